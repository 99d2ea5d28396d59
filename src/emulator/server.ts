import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { Dispatcher } from "./dispatch.ts";
import type { EngineHost } from "./service/engine-host.ts";
import { createServer } from "./http/node-http.ts";
import { httpDate } from "./http/reply.ts";
import { resolveOptions, type EmulatorOptions, type ResolvedOptions } from "./service/options.ts";
import { statsOf, type EmulatorStats } from "./route/admin.ts";
import { Service } from "./service/service.ts";
import { QuadTokenizer } from "./tokenizer/quad-tokenizer.ts";
import type { EngineTokenizer } from "./tokenizer/tokenizer.ts";

export type { EmulatorOptions } from "./service/options.ts";
export type { EmulatorStats } from "./route/admin.ts";

/** An emulated vLLM server that listens. */
export interface Emulator {
  /** For example http://127.0.0.1:9000. */
  readonly url: string;
  readonly port: number;
  readonly engine: EngineHost;
  stats(): EmulatorStats;
  /** SIGTERM: `drain` or `terminate`, by the shutdown timeout. Resolves when the port is closed. */
  signalTerminate(): Promise<void>;
  /** Running answers end by themselves, for as long as the shutdown timeout; new texts fail. Then the port closes. */
  drain(): Promise<void>;
  /** Every answer ends at once with finish_reason "abort", then the port closes. */
  terminate(): Promise<void>;
  /** The engine process dies: every answer fails with an error event or a 500, then the port closes. */
  killEngine(): Promise<void>;
  /** Frees everything at once, without a word to the clients. */
  close(): Promise<void>;
}

/** uvicorn's idle limit of a kept connection. */
const KEEP_ALIVE_MS = 5_000;
/** httptools knows no limit; this one is beyond what was seen to pass. */
const HEADER_BYTES_MAX = 8 * 1024 * 1024;
/** How long vLLM's port stays open after it was asked to stop and nothing runs any more. */
const PORT_LINGER_MS = 100;
/** Waited for in so many parts, so that who connected while this process got no time is answered all the same. */
const PORT_LINGER_PARTS = 10;
const DRAIN_POLL_MS = 20;

/** Starts one emulated server. Rejects with an Error that names the option, or with the system's error for the port. */
export async function startEmulator(given: EmulatorOptions): Promise<Emulator> {
  const options = resolveOptions(given);
  const service = new Service(options, await loadTokenizer(options));
  const dispatcher = new Dispatcher(service);
  const http = createServer({ maxHeaderSize: HEADER_BYTES_MAX, noDelay: true, requestTimeout: 0 }, dispatcher.handle);
  http.keepAliveTimeout = KEEP_ALIVE_MS;
  http.keepAliveTimeoutBuffer = 0;
  http.headersTimeout = 0;
  http.maxHeadersCount = 0;
  http.on("clientError", (_error, socket) => refuseBytes(socket));
  const sockets = new Set<Socket>();
  http.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await listen(http, options);
  await service.host.publisher?.listen();
  return new RunningEmulator(http, sockets, service);
}

class RunningEmulator implements Emulator {
  readonly url: string;
  readonly port: number;
  readonly #http: Server;
  readonly #sockets: Set<Socket>;
  readonly #service: Service;
  #stopped: Promise<void> | undefined;

  constructor(http: Server, sockets: Set<Socket>, service: Service) {
    this.#http = http;
    this.#sockets = sockets;
    this.#service = service;
    const { address, family, port } = http.address() as AddressInfo;
    this.port = port;
    this.url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    service.host.kvTransfer?.listensAt(address === "0.0.0.0" || address === "::" ? "127.0.0.1" : address, port);
    service.onKill = () => void this.killEngine();
  }

  get engine(): EngineHost {
    return this.#service.host;
  }

  stats(): EmulatorStats {
    return statsOf(this.#service);
  }

  signalTerminate(): Promise<void> {
    return this.#service.options.shutdownTimeoutSeconds > 0 ? this.drain() : this.terminate();
  }

  drain(): Promise<void> {
    this.#stopped ??= this.#drain();
    return this.#stopped;
  }

  terminate(): Promise<void> {
    this.#stopped ??= this.#terminate();
    return this.#stopped;
  }

  killEngine(): Promise<void> {
    this.#service.phase = "dead";
    this.engine.kill();
    this.#service.sleep.release();
    return this.#closePort();
  }

  async close(): Promise<void> {
    this.engine.stop();
    const closed = this.#closePort(0);
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #drain(): Promise<void> {
    this.#service.phase = "draining";
    const untilMs = performance.now() + this.#service.options.shutdownTimeoutSeconds * MILLIS_PER_SECOND;
    while (!this.engine.idle && performance.now() < untilMs) await sleep(DRAIN_POLL_MS);
    await this.#terminate();
  }

  #terminate(): Promise<void> {
    this.#service.phase = "stopping";
    this.#service.sleep.release();
    this.engine.abortAll();
    return this.#closePort();
  }

  /** Stops listening after a moment, and lets go of the connections once their answers are out. */
  async #closePort(lingerMs = PORT_LINGER_MS): Promise<void> {
    const parts = lingerMs > 0 ? PORT_LINGER_PARTS : 0;
    for (let part = 0; part < parts; part++) await sleep(lingerMs / parts);
    const closed = new Promise<void>((resolve) => {
      if (this.#http.listening) this.#http.close(() => resolve());
      else resolve();
    });
    this.#http.closeIdleConnections();
    this.engine.stop();
    await closed;
  }
}

async function loadTokenizer(options: ResolvedOptions): Promise<EngineTokenizer> {
  if (options.tokenizer === undefined) return new QuadTokenizer();
  const { LibraryTokenizer } = await import("./tokenizer/library-tokenizer.ts");
  return LibraryTokenizer.load(options.tokenizer);
}

function listen(http: Server, options: ResolvedOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(options.port, options.host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}

/** Bytes that are not HTTP: uvicorn answers so and closes. */
function refuseBytes(socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const text = "Invalid HTTP request received.";
  const head = ["HTTP/1.1 400 Bad Request", `date: ${httpDate()}`, "server: uvicorn"];
  head.push("content-type: text/plain; charset=utf-8", `content-length: ${text.length}`, "connection: close");
  socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
