/**
 * What a gateway costs that has just started, and until it is warm: every proxy is started anew, and gets requests at one
 * rate, evenly spread, from the moment that it is ready. By parts of the time since then (2, 10, 30, 60 s): CPU of all
 * threads for each answer or event, p50 and p99 of an answer's time or of a stream's first event.
 *
 *     npm run bench -- young [--rounds 3] [--seconds 60] [--rate 300] [--streams 30] [--only "2 KB"]
 *                            [--beside CHECKOUT] [--peers FOLDER] [--shadow]
 *
 * Each proxy is pinned to the first core, the engines and the load generator to the last. Answers have 510 bytes, streams
 * 100 events, 10 ms apart, of streams that begin evenly spread; `no ids` are engines that give no token ids. With --shadow
 * also a gateway that records, and has the shadow beside it. With --beside a checkout of another commit (with its
 * node_modules), in turns; with --peers the routers of a Python virtual environment (sglang-router, vllm-router, smg).
 * The last row of each proxy is what its start took: seconds until ready, CPU, memory at the end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { EXACT_TOKENS, cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import type { PacedOrder, PartReport } from "./paced-load.ts";
import { median } from "#core/base/quantile.ts";
import { residentOf, startPeers } from "./peer-process.ts";

const ENDPOINTS = 8;
/** After which a start has kept all code that it compiled. */
const KEPT_CODE_MILLIS = 3_000;
const PARTS_SECONDS = [2, 10, 30, 60];

interface Workload {
  readonly name: string;
  readonly bodyBytes: number;
  readonly stream: boolean;
}

const ALL_WORKLOADS: readonly Workload[] = [
  { name: "2 KB", bodyBytes: 2_048, stream: false },
  { name: "8 KB", bodyBytes: 8_192, stream: false },
  { name: "32 KB", bodyBytes: 32_768, stream: false },
  { name: "SSE event", bodyBytes: 2_048, stream: true },
];

/** A process that has just become ready. */
interface Started {
  readonly port: number;
  readonly pids: readonly number[];
  readonly readySeconds: number;
  readonly end: () => Promise<void>;
}

interface Proxy {
  readonly name: string;
  /** Keeps compiled code from start to start. */
  readonly isOurs?: boolean;
  /** Undefined where it does not start. */
  readonly start: (ports: readonly number[]) => Promise<Started | undefined>;
}

interface Measured {
  readonly parts: readonly (PartReport & { readonly micros: number })[];
  readonly readySeconds: number;
  readonly startCpuSeconds: number;
  readonly megabytes: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "60" },
    rate: { type: "string", default: "300" },
    streams: { type: "string", default: "30" },
    only: { type: "string", default: "" },
    beside: { type: "string" },
    peers: { type: "string" },
    shadow: { type: "boolean", default: false },
  },
});
const seconds = Number(values.seconds);
const partsMillis = [...PARTS_SECONDS.filter((end) => end < seconds), seconds].map((end) => 1e3 * end);
const lastCore = availableParallelism() - 1;
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const { ports } = await started<{ ports: number[] }>("stub-upstream.ts", [String(ENDPOINTS)]);
  const load = child("paced-load.ts", lastCore, []);
  await message(load);
  const proxies: readonly Proxy[] = [
    { name: "bare", start: bareProxy },
    { name: "gnomon", isOurs: true, start: gnomon(EXACT_TOKENS) },
    ...(values.shadow ? [{ name: "recorded", isOurs: true, start: gnomon([...EXACT_TOKENS, ...recording()]) }] : []),
    ...(values.beside === undefined
      ? []
      : [{ name: "beside", isOurs: true, start: gnomon(EXACT_TOKENS, resolve(values.beside)) }]),
    ...(values.peers === undefined ? [] : peers(resolve(values.peers))),
  ];
  // So that each start finds the compiled code that a first one keeps (`bench -- start` has what that one takes).
  for (const { start, isOurs } of proxies) {
    if (isOurs !== true) continue;
    const first = await start(ports);
    await sleep(KEPT_CODE_MILLIS);
    await first?.end();
  }
  for (const workload of ALL_WORKLOADS.filter(({ name }) => values.only === "" || name === values.only)) {
    const all = new Map<string, Measured[]>(proxies.map(({ name }) => [name, []]));
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const { name, start } of round % 2 === 0 ? proxies : proxies.toReversed()) {
        const proxy = await start(ports);
        if (proxy !== undefined) all.get(name)!.push(await measure(load, proxy, workload));
      }
    }
    report(workload, all);
  }
}

async function measure(load: ChildProcess, proxy: Started, { bodyBytes, stream }: Workload): Promise<Measured> {
  const perSecond = Number(stream ? values.streams : values.rate);
  const order: PacedOrder = { port: proxy.port, bodyBytes, stream, perSecond, partsMillis };
  const startCpu = cpuMicros(proxy.pids);
  const began = performance.now();
  const reported = message(load);
  load.send(order);
  const micros: number[] = [];
  for (let before = startCpu; micros.length < partsMillis.length;) {
    await sleep(Math.max(0, began + partsMillis[micros.length]! - performance.now()));
    const cpu = cpuMicros(proxy.pids);
    micros.push(cpu - before);
    before = cpu;
  }
  const parts = (await reported) as readonly PartReport[];
  const megabytes = proxy.pids.reduce((sum, pid) => sum + residentOf(pid), 0);
  await proxy.end();
  const failures = parts.reduce((sum, part) => sum + part.failures, 0);
  if (failures > 0) console.log(`${failures} failed`);
  return {
    parts: parts.map((part, i) => ({ ...part, micros: micros[i]! / (stream ? part.events : part.answers) })),
    readySeconds: proxy.readySeconds,
    startCpuSeconds: startCpu / 1e6,
    megabytes,
  };
}

function report({ name, stream }: Workload, all: ReadonlyMap<string, readonly Measured[]>): void {
  const rate = `${stream ? values.streams : values.rate} ${stream ? "streams" : "requests"} a second`;
  console.log(`\n${name}, ${rate}: us of CPU (of bare; range), and p50, p99 in ms; medians of ${values.rounds}`);
  console.log(`| | ${partsMillis.map((end) => `to ${end / 1e3} s`).join(" | ")} | ready, s | its CPU, s | MB |`);
  console.log(`|---${"|---:".repeat(partsMillis.length + 3)}|`);
  const bare = all.get("bare")!;
  for (const [proxy, runs] of all) {
    if (runs.length === 0) continue;
    const cells = partsMillis.map((_, part) => {
      const of = (pick: (one: Measured["parts"][number]) => number, from = runs): number =>
        median(from.map(({ parts }) => pick(parts[part]!)));
      const each = runs.map(({ parts }) => parts[part]!.micros);
      const ratio = of((one) => one.micros) / of((one) => one.micros, bare);
      const range = `${Math.min(...each).toFixed(0)}-${Math.max(...each).toFixed(0)}`;
      const waits = `${of((one) => one.p50Millis).toFixed(1)}, ${of((one) => one.p99Millis).toFixed(1)}`;
      return `${of((one) => one.micros).toFixed(0)} (${ratio.toFixed(2)}; ${range}), ${waits}`;
    });
    const own = (pick: (one: Measured) => number): string => median(runs.map(pick)).toFixed(1);
    cells.push(
      own((one) => one.readySeconds),
      own((one) => one.startCpuSeconds),
      own((one) => one.megabytes),
    );
    console.log(`| ${proxy} | ${cells.join(" | ")} |`);
  }
}

function recording(): readonly string[] {
  return ["--record", mkdtempSync(join(scratch, "trace-")), "--set", "shadow.enabled=true"];
}

function gnomon(flags: readonly string[], root?: string): Proxy["start"] {
  return async (ports) => {
    const began = performance.now();
    const { port, process } = await startGateway(ports, flags, 0, root);
    return { port, pids: [process.pid!], readySeconds: (performance.now() - began) / 1e3, end: () => ended(process) };
  };
}

async function bareProxy(ports: readonly number[]): Promise<Started> {
  const began = performance.now();
  const proxy = child("bare-proxy.ts", 0, ports.map(String));
  const { port } = (await message(proxy)) as { port: number };
  return { port, pids: [proxy.pid!], readySeconds: (performance.now() - began) / 1e3, end: () => ended(proxy) };
}

function peers(folder: string): Proxy[] {
  return ["sglang", "vllm", "smg"].map((name) => ({
    name,
    start: async (ports) => {
      const [peer] = await startPeers(ports, folder, [name]);
      if (peer === undefined) return undefined;
      return { port: peer.port, pids: peer.pids, readySeconds: peer.startMillis / 1e3, end: () => ended(peer.process) };
    },
  }));
}

function ended(one: ChildProcess): Promise<void> {
  const end = new Promise<void>((done) => void one.once("exit", () => done()));
  one.kill("SIGKILL");
  return end;
}

async function started<T>(file: string, args: readonly string[]): Promise<T> {
  return (await message(child(file, lastCore, args))) as T;
}

function child(file: string, core: number, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
