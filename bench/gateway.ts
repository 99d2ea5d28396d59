/**
 * CPU per request of the gateway beside a bare Hono + dispatch proxy and nginx (where it is installed), in one run:
 * 2, 8 and 32 KB chat bodies over 8 endpoints, and server-sent events 10 ms apart.
 *
 *     npx node bench/gateway.ts [--rounds 3] [--starts 1] [--millis 4000] [--beside FOLDER] [--only "SSE"] [--peers FOLDER]
 *                               [--tap | --records]
 *     npx node bench/gateway.ts --parts [--beside FOLDER] [--rounds 3]
 *
 * The gateway is what `serve` starts, with its defaults: scraping, metrics, decisions kept. It runs three times: with
 * exact Llama-3 tokens, which the ratios are of, the same without the token ids by which a stream goes on elsewhere
 * (`no ids`), and with estimated tokens. Each proxy is a process pinned to the first core, the engines and the load
 * generator are two more on the last. CPU is the time that the proxy's threads ran, from /proc, over the answers or
 * events in that time. Rounds are interleaved and run backwards every other time; shown is all of them together, since a
 * full collection of garbage falls into one round and not into the next. One gateway is unlike the same one started again
 * (compilers, where memory lies): with --starts they begin anew so often, in turns as to which is first.
 *
 * With --beside a checkout of another commit (with its node_modules) its gateway is measured in the same rounds, in the
 * place of `no ids` and `estimate`, and a column has the ratio: what a change costs.
 *
 * With --peers a Python virtual environment with sglang-router, vllm-router or smg, these are measured in the same rounds,
 * in the place of `no ids` and `estimate`: with the policy that knows of caches, and sglang-router's round-robin. A second
 * table has gnomon's cost as a multiple of each.
 *
 * With --parts, instead of all this, the gateway and the one beside are started anew each round, warmed up and profiled: what
 * of a request of 2 KB is the sending to engines, tokens, scoring and so on (./gateway-parts.ts). Where one process is
 * slower than another throughout, its tokens, whose code seldom changes, are too: hence a column of the whole over them.
 *
 * With --tap a tap is measured in their place, in front of the first engine as if that were another router, with exact
 * tokens and a trace: once as it looks at the engines' counters, since no header names the engine (`tap`), and once as it
 * looks at headers alone (`tap heads`). A gateway that records is beside them.
 *
 * With --records the gateway alone, one that records, and one that records and has the shadow beside it, each also by what
 * its threads are for; with --beside the two of the other checkout too.
 *
 * Each round of the gateway is printed too, with what its compilers and collectors of garbage took of it.
 *
 * Each proxy is warmed up with each workload first, until its code is compiled: the compiler's threads count as well, and
 * in the first 50,000 events of a stream they take as much as everything else.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { monotonicMicros, PARTS, PartsProfile } from "./gateway-parts.ts";
import { EXACT_TOKENS, cpuMicros, microsByThread, pinned, startGateway, type ThreadKind } from "./gateway-process.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { startNginx } from "./nginx-process.ts";
import { startPeers } from "./peer-process.ts";

const ENDPOINTS = 8;
const CONNECTIONS = 32;
const STREAMS = 100;
/** Answers or events until the compilers are done, and the time after which a slow machine goes on without. */
const WARM_UP_ANSWERS = 30_000;
const WARM_UP_EVENTS = 60_000;
const WARM_UP_MILLIS_MAX = 45_000;
/** With --parts. */
const PROFILED_MILLIS = 6_000;
/** The others have no compiler. */
const COMPILED_ON_THE_WAY: ReadonlySet<string> = new Set([
  "exact",
  "no ids",
  "estimate",
  "beside",
  "bare",
  "records",
  "shadow",
  "rec. beside",
  "sh. beside",
  "tap",
  "tap heads",
]);

interface Workload {
  readonly name: string;
  readonly bodyBytes: number;
  readonly stream: boolean;
  /** Most that the gateway may cost, as a multiple of the bare proxy or in words. */
  readonly budget: string;
}

const ALL_WORKLOADS: readonly Workload[] = [
  { name: "2 KB", bodyBytes: 2_048, stream: false, budget: "1.4 bare" },
  { name: "8 KB", bodyBytes: 8_192, stream: false, budget: "1.6 bare" },
  { name: "32 KB", bodyBytes: 32_768, stream: false, budget: "1.8 bare" },
  { name: "SSE event", bodyBytes: 2_048, stream: true, budget: "1 bare" },
];

interface Proxy {
  readonly name: string;
  readonly port: number;
  /** The process and, for nginx, its workers. */
  readonly pids: readonly number[];
  /** Of a gateway, which may begin anew. */
  readonly end?: () => Promise<unknown>;
}

/** What a proxy took of a workload in one round. */
interface Round {
  /** Answers, or events of streams. */
  readonly count: number;
  /** For one of them. */
  readonly micros: number;
  readonly threads: ReadonlyMap<ThreadKind, number>;
}

const NOT_MEASURED: Round = { count: 1, micros: Number.NaN, threads: new Map() };

const { values } = parseArgs({
  options: {
    rounds: { type: "string" },
    starts: { type: "string" },
    millis: { type: "string" },
    beside: { type: "string" },
    only: { type: "string" },
    peers: { type: "string" },
    parts: { type: "boolean" },
    tap: { type: "boolean", default: false },
    records: { type: "boolean", default: false },
  },
});
const WORKLOADS = ALL_WORKLOADS.filter(({ name }) => name.includes(values.only ?? ""));
const rounds = Number(values.rounds ?? 3);
const starts = Number(values.starts ?? 1);
const millis = Number(values.millis ?? 4_000);
const KINDS: readonly ThreadKind[] = ["own", "V8", "pool", "shadow"];
const lastCore = availableParallelism() - 1;
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await (values.parts === true ? mainOfParts() : main());
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const { ports } = await started<{ ports: number[] }>("stub-upstream.ts", lastCore, [String(ENDPOINTS)]);
  const load = child("http-load.ts", lastCore, []);
  await message(load);
  const others: Proxy[] = [await bareProxy(ports)];
  const nginx = await startNginx(ports, scratch);
  if (nginx !== undefined) others.push({ name: "nginx", ...nginx });
  const peers = values.peers === undefined ? [] : await startPeers(ports, resolve(values.peers));
  for (const { name, startMillis, residentMegabytes } of peers)
    console.log(`${name}: first answer after ${(startMillis / 1000).toFixed(1)} s, ${residentMegabytes.toFixed(0)} MB`);
  others.push(...peers);
  const costs = new Map<string, Round[]>();
  let proxies: Proxy[] = [];
  for (let start = 0; start < starts; start++) {
    const gateways: Proxy[] = [];
    const begin = [() => gnomon("exact", ports, EXACT_TOKENS), ...variants(ports)];
    for (const one of start % 2 === 0 ? begin : begin.toReversed()) gateways.push(await one());
    proxies = [...(start % 2 === 0 ? gateways : gateways.toReversed()), ...others];
    for (const proxy of start === 0 ? proxies : gateways) {
      for (const workload of WORKLOADS) await warmUp(load, proxy, workload);
    }
    for (let round = 0; round < rounds; round++) {
      for (const workload of WORKLOADS) {
        for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
          const key = `${proxy.name} ${workload.name}`;
          costs.set(key, [...(costs.get(key) ?? []), await measure(load, proxy, workload, millis)]);
        }
      }
    }
    if (start < starts - 1) {
      for (const { end } of gateways) await end?.();
    }
  }
  report(proxies, costs);
  reportRounds(costs);
  if (values.records) reportThreads(proxies, costs);
}

/** A table of microseconds a request by part: a line for each round of each gateway. */
async function mainOfParts(): Promise<void> {
  const { ports } = await started<{ ports: number[] }>("stub-upstream.ts", lastCore, [String(ENDPOINTS)]);
  const load = child("http-load.ts", lastCore, []);
  await message(load);
  const workload = ALL_WORKLOADS[0]!;
  const roots: [name: string, root: string | undefined][] = [["exact", undefined]];
  if (values.beside !== undefined) roots.push(["beside", resolve(values.beside)]);
  const cell = (text: string): string => text.padStart(12);
  console.log("".padEnd(8) + [...PARTS, "all", "/ tokens"].map(cell).join(""));
  for (let round = 0; round < rounds; round++) {
    for (const [name, root] of round % 2 === 0 ? roots : roots.toReversed()) {
      const profile = new PartsProfile(scratch);
      const gateway = await startGateway(ports, EXACT_TOKENS, 0, root, profile.nodeFlags);
      const proxy = { name, port: gateway.port, pids: [gateway.pid] };
      await warmUp(load, { ...proxy, name: "exact" }, workload);
      const from = monotonicMicros();
      const { count } = await run(load, proxy, workload, PROFILED_MILLIS);
      const micros = await profile.end(gateway, from, monotonicMicros());
      const all = [...micros.values()].reduce((sum, one) => sum + one, 0);
      const row = [...micros.values(), all].map((part) => cell((part / count).toFixed(1)));
      console.log(name.padEnd(8) + row.join("") + cell((all / micros.get("tokens")!).toFixed(2)));
    }
  }
}

/** Each round of the gateway, and what of it was not its own thread's: where rounds differ, this shows by what. */
function reportRounds(costs: ReadonlyMap<string, readonly Round[]>): void {
  for (const name of values.beside === undefined || values.records ? ["exact"] : ["exact", "beside"]) {
    console.log(`${name}, each round in turn, and of it compilers and collectors of garbage`);
    for (const workload of WORKLOADS) {
      const rounds = (costs.get(`${name} ${workload.name}`) ?? []).map(
        ({ micros, threads }) => `${micros.toFixed(1)} (${(threads.get("V8") ?? 0).toFixed(1)})`,
      );
      console.log(workload.name.padEnd(10) + rounds.map((text) => text.padStart(14)).join(""));
    }
  }
}

/** What each kind of thread took. */
function reportThreads(proxies: readonly Proxy[], costs: ReadonlyMap<string, readonly Round[]>): void {
  const cell = (text: string): string => text.padStart(10);
  for (const workload of WORKLOADS) {
    console.log(`${workload.name}, us by thread`.padEnd(24) + KINDS.map(cell).join(""));
    for (const { name } of proxies) {
      const rounds = costs.get(`${name} ${workload.name}`) ?? [];
      const row = KINDS.map((kind) => cell(together(rounds, ({ threads }) => threads.get(kind) ?? 0).toFixed(1)));
      console.log(name.padEnd(24) + row.join(""));
    }
  }
}

/** Of all rounds as if they were one. */
function together(rounds: readonly Round[], cost: (round: Round) => number): number {
  const [sum, count] = rounds.reduce(([sum, all], one) => [sum + cost(one) * one.count, all + one.count], [0, 0]);
  return sum / count;
}

/** What starts the gateways that are shown beside the one that the ratios are of. */
function variants(ports: readonly number[]): (() => Promise<Proxy>)[] {
  if (values.peers !== undefined) return [];
  const record = (): string[] => ["--record", mkdtempSync(join(scratch, "trace-"))];
  const other = values.beside === undefined ? undefined : resolve(values.beside);
  if (values.records) {
    const kept = (): string[] => [...EXACT_TOKENS, ...record()];
    const shadow = ["--set", "shadow.enabled=true"];
    const pair = [() => gnomon("records", ports, kept()), () => gnomon("shadow", ports, [...kept(), ...shadow])];
    if (other === undefined) return pair;
    return [
      ...pair,
      () => gnomon("rec. beside", ports, kept(), other),
      () => gnomon("sh. beside", ports, [...kept(), ...shadow], other),
    ];
  }
  if (values.tap) {
    const router = ["--router", `http://127.0.0.1:${ports[0]}`];
    const tap = (name: string, ...set: string[]): Promise<Proxy> =>
      gnomon(name, ports, [...EXACT_TOKENS, ...router, ...record(), ...set], undefined, "tap");
    return [
      () => gnomon("records", ports, [...EXACT_TOKENS, ...record()]),
      () => tap("tap"),
      () => tap("tap heads", "--set", "tap.metricsMillis=0"),
    ];
  }
  if (other !== undefined) return [() => gnomon("beside", ports, EXACT_TOKENS, other)];
  return [
    () => gnomon("no ids", ports, [...EXACT_TOKENS, "--set", "clients.continueStreams=false"]),
    () => gnomon("estimate", ports, ["--tokenizer", "estimate"]),
  ];
}

/** Two tables: on a machine with other work the lowest round shows more than all of them. */
function report(proxies: readonly Proxy[], costs: ReadonlyMap<string, readonly Round[]>): void {
  for (const [title, pick] of [
    ["all", (rounds: readonly Round[]) => together(rounds, ({ micros }) => micros)],
    ["lowest", (rounds: readonly Round[]) => Math.min(...rounds.map(({ micros }) => micros))],
  ] as const) {
    const cost = (proxy: string, { name }: Workload): number => pick(costs.get(`${proxy} ${name}`) ?? [NOT_MEASURED]);
    const cell = (value: number | string): string =>
      (typeof value === "string" ? value : value.toFixed(value < 10 ? 2 : 1)).padStart(12);
    const names = proxies.map(({ name }) => cell(name));
    const turns = `${rounds} rounds${starts > 1 ? ` of each of ${starts} starts` : ""}`;
    console.log(`us of CPU per answer or event, ${title} of ${turns}, ${ENDPOINTS} endpoints`);
    console.log(
      [
        "".padEnd(10),
        ...names,
        cell("/ bare"),
        cell("budget"),
        cell("/ nginx"),
        ...(values.beside === undefined || values.records ? [] : [cell("/ beside")]),
      ].join(""),
    );
    for (const workload of WORKLOADS) {
      const own = cost("exact", workload);
      const row = proxies.map(({ name }) => cell(cost(name, workload)));
      row.push(cell(own / cost("bare", workload)), cell(workload.budget), cell(own / cost("nginx", workload)));
      if (values.beside !== undefined && !values.records) row.push(cell(own / cost("beside", workload)));
      console.log(workload.name.padEnd(10) + row.join(""));
      if (values.peers === undefined) continue;
      console.log(`${"  exact /".padEnd(10)}${proxies.map(({ name }) => cell(own / cost(name, workload))).join("")}`);
    }
  }
}

/** A proxy without a compiler needs none. */
async function warmUp(load: ChildProcess, proxy: Proxy, workload: Workload): Promise<void> {
  if (!COMPILED_ON_THE_WAY.has(proxy.name)) return;
  const until = performance.now() + WARM_UP_MILLIS_MAX;
  const wanted = workload.stream ? WARM_UP_EVENTS : WARM_UP_ANSWERS;
  for (let done = 0; done < wanted && performance.now() < until;)
    done += (await run(load, proxy, workload, 1_000)).count;
}

/** Microseconds of CPU per answer, or per event of a stream. */
async function measure(load: ChildProcess, proxy: Proxy, workload: Workload, time: number): Promise<Round> {
  const [all, before] = [cpuMicros(proxy.pids), microsByThread(proxy.pids)];
  const { count } = await run(load, proxy, workload, time);
  const micros = (cpuMicros(proxy.pids) - all) / count;
  const threads = new Map<ThreadKind, number>();
  for (const [kind, sum] of microsByThread(proxy.pids)) threads.set(kind, (sum - (before.get(kind) ?? 0)) / count);
  return { count, micros, threads };
}

async function run(
  load: ChildProcess,
  proxy: Proxy,
  { bodyBytes, stream }: Workload,
  time: number,
): Promise<{ readonly count: number }> {
  const connections = stream ? STREAMS : CONNECTIONS;
  const order: LoadOrder = { port: proxy.port, bodyBytes, stream, connections, millis: time };
  load.send(order);
  const { answers, events, failures } = (await message(load)) as LoadReport;
  if (failures > 0) throw new Error(`${proxy.name}: ${failures} of ${answers} requests failed`);
  return { count: stream ? events : answers };
}

async function bareProxy(ports: readonly number[]): Promise<Proxy> {
  const proxy = child("bare-proxy.ts", 0, ports.map(String));
  const { port } = (await message(proxy)) as { port: number };
  return { name: "bare", port, pids: [proxy.pid!] };
}

async function gnomon(
  name: string,
  ports: readonly number[],
  flags: readonly string[],
  root?: string,
  command?: "tap",
): Promise<Proxy> {
  const { port, pid, process } = await startGateway(ports, flags, 0, root, [], command);
  const end = (): Promise<unknown> => {
    const ended = once(process, "exit");
    process.kill("SIGTERM");
    return ended;
  };
  return { name, port, pids: [pid], end };
}

async function started<T>(file: string, core: number, args: readonly string[]): Promise<T> {
  return (await message(child(file, core, args))) as T;
}

function child(file: string, core: number, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
