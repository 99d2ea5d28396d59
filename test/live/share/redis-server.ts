import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AddressInfo } from "node:net";

/** A Redis that a test may do anything to. */
export interface OwnRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  signal(name: NodeJS.Signals): void;
  /** Ends it at once; `start` has another one on the same port, empty. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts redis-server from PATH on a free port of loopback; undefined where there is none. */
export async function ownRedis(
  flags: readonly string[] = [],
  port?: number,
  first: readonly string[] = [],
): Promise<OwnRedis | undefined> {
  const taken = port ?? (await freePort());
  const folder = await mkdtemp(join(tmpdir(), "gnomon-redis-"));
  let child = await started(taken, folder, flags, first);
  if (child === undefined) {
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
  const kill = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${taken}`,
    port: taken,
    get pid() {
      return child!.pid!;
    },
    signal: (name) => void child?.kill(name),
    kill,
    restart: async () => {
      await kill();
      child = await started(taken, folder, flags, first);
    },
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** `first` goes before all flags: a configuration file has to. */
async function started(
  port: number,
  folder: string,
  flags: readonly string[],
  first: readonly string[],
): Promise<ChildProcess | undefined> {
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
  const fixed = first.length > 0 ? place : [...place, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", [...first, ...fixed, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const failed = once(child, "error").then(() => false);
  const ready = (async () => {
    for await (const text of child.stdout.setEncoding("utf8")) {
      if (/Ready to accept connections|Sentinel ID is/i.test(String(text))) return true;
    }
    return false;
  })();
  if (!(await Promise.race([failed, ready]))) return undefined;
  child.stdout.resume();
  return child;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
