import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { kept } from "./children.ts";
import { freePort } from "./free-port.ts";
import { pinned } from "./gateway-process.ts";

/** A router of the field that answers, and what its start took. */
export interface PeerProcess {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
  readonly startMillis: number;
  readonly residentMegabytes: number;
  /** The first of them. */
  readonly process: ChildProcess;
}

interface Peer {
  readonly name: string;
  readonly program: PeerProgram;
  readonly args: readonly string[];
}

export type PeerProgram = "sglang-router" | "vllm-router" | "smg";

const START_MILLIS_MAX = 30_000;
const CACHE_AWARE = ["--policy", "cache_aware"];
const PEERS: readonly Peer[] = [
  { name: "sglang", program: "sglang-router", args: ["launch", ...CACHE_AWARE] },
  { name: "sglang rr", program: "sglang-router", args: ["launch", "--policy", "round_robin"] },
  { name: "vllm", program: "vllm-router", args: CACHE_AWARE },
  {
    name: "smg",
    program: "smg",
    args: ["launch", "--backend", "vllm", "--disable-tokenizer-autoload", ...CACHE_AWARE],
  },
];

/**
 * Runs a router of a virtual environment. SMG by its module: sglang-router brings a `bin/smg` too, which is sglang-router, and
 * whoever was installed last has the name.
 */
export function peerCommand(
  folder: string,
  program: PeerProgram,
): { readonly command: string; readonly args: readonly string[]; readonly isThere: boolean } {
  const isModule = program === "smg";
  const command = join(folder, "bin", isModule ? "python" : program);
  const needed = isModule ? join(folder, "bin", "smg") : command;
  return { command, args: isModule ? ["-m", "smg"] : [], isThere: existsSync(needed) && existsSync(command) };
}

/**
 * Starts the routers that a Python virtual environment has (`pip install sglang-router vllm-router smg`, with what they
 * import), each pinned to the first core, one after another; one that does not answer is left out with a line on why.
 * Engines are URLs, or ports of this machine.
 */
export async function startPeers(
  engines: readonly (number | string)[],
  folder: string,
  names: readonly string[] = PEERS.map(({ name }) => name),
): Promise<PeerProcess[]> {
  const started: PeerProcess[] = [];
  for (const peer of PEERS.filter(({ name }) => names.includes(name))) {
    if (!peerCommand(folder, peer.program).isThere) {
      console.log(`${peer.name}: ${peer.program} is not in ${folder}: left out`);
      continue;
    }
    const urls = engines.map((one) => (typeof one === "string" ? one : `http://127.0.0.1:${one}`));
    const one = await start(peer, urls, folder);
    if (typeof one === "string") console.log(`${peer.name}: ${one}: left out`);
    else started.push(one);
  }
  return started;
}

async function start(peer: Peer, urls: readonly string[], folder: string): Promise<PeerProcess | string> {
  const [port, prometheusPort] = [await freePort(), await freePort()];
  const listen = ["--host", "127.0.0.1", "--port", String(port), "--prometheus-port", String(prometheusPort)];
  const workers = ["--worker-urls", ...urls];
  const own = peerCommand(folder, peer.program);
  const [command, args] = pinned(0, own.command, [
    ...own.args,
    ...peer.args,
    ...listen,
    "--log-level",
    "error",
    ...workers,
  ]);
  const began = performance.now();
  const child = kept(spawn(command, args, { stdio: "ignore" }));
  while (!(await answers(port))) {
    if (child.exitCode !== null) return `it ended with ${child.exitCode}`;
    if (performance.now() - began > START_MILLIS_MAX) {
      child.kill("SIGKILL");
      return `no answer within ${START_MILLIS_MAX / 1000} s`;
    }
    await new Promise((next) => setTimeout(next, 20));
  }
  const pids = tree(child);
  const residentMegabytes = pids.reduce((sum, pid) => sum + residentOf(pid), 0);
  return { name: peer.name, port, pids, startMillis: performance.now() - began, residentMegabytes, process: child };
}

async function answers(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tiny", messages: [{ role: "user", content: "hello" }] }),
      signal: AbortSignal.timeout(2_000),
    });
    await answer.text();
    return answer.ok;
  } catch {
    return false;
  }
}

/** The process and those that it started. */
function tree(child: ChildProcess): number[] {
  const all = [child.pid!];
  for (const pid of all) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim();
      if (children !== "") all.push(...children.split(" ").map(Number));
    }
  }
  return all;
}

/** Resident memory of a process, in megabytes. */
export function residentOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}
