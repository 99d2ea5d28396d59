import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer, connect, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { kept } from "../children.ts";
import { freePort } from "./processes.ts";

/** A Redis that may be killed, stopped and filled. */
export class BenchRedis {
  readonly port: number;
  #child: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
  }

  static async start(): Promise<BenchRedis> {
    const redis = new BenchRedis(await freePort());
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), "gnomon-bench-redis-"));
    const flags = ["--port", String(this.port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
    this.#child = kept(spawn("redis-server", [...flags, "--maxmemory-policy", "noeviction"], { stdio: "pipe" }));
    for await (const text of this.#child.stdout!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
      if (String(text).includes("Ready to accept connections")) break;
    }
    this.#child.stdout!.resume();
  }

  async kill(): Promise<void> {
    const gone = once(this.#child!, "exit");
    this.#child!.kill("SIGKILL");
    await gone;
  }

  pause(): void {
    this.#child!.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child!.kill("SIGCONT");
  }

  /** Bytes that it may hold; 0 for any. */
  async limit(bytes: number): Promise<void> {
    const socket = connect(this.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(`CONFIG SET maxmemory ${bytes}\r\n`);
    await once(socket, "data");
    socket.destroy();
  }
}

/** Passes everything on to a port, each piece so much later and none before the one that came first. */
export async function slowProxy(to: number, delayMillis: () => number): Promise<{ port: number; end(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => into.destroy());
      from.on("close", () => into.destroy());
      let last = Promise.resolve();
      from.on("data", (piece: Buffer) => {
        const later = pause(delayMillis());
        last = last.then(() => later).then(() => void (into.destroyed || into.write(piece)));
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    end: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
