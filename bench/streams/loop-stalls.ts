/**
 * Loaded before a process (`--import`): finds when its event loop is late, and what the main thread did meanwhile. At each
 * SIGUSR2 it writes what was since the last one, a `StallReport`, to the file that STALLS_PATH names. It profiles nothing
 * where STALLS_PROFILED is 0.
 */
import { openSync, readSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { type PerformanceNodeEntry, PerformanceObserver } from "node:perf_hooks";
import { threadCpuMillis } from "../thread-cpu.ts";
import { FORGOTTEN_MILLIS } from "./forgotten-millis.ts";
import { type Span, heaviestIn } from "./span-samples.ts";

/** Milliseconds between two turns of a loop that is asked for one every millisecond. */
export interface Stall {
  readonly millis: number;
  /** Of it, CPU of the thread: collections of garbage, which others on the machine make longer, and all other work. */
  readonly cpuMillis: number;
  /** Of it, how long the thread could have run and got no core. */
  readonly waitedMillis: number;
  /** Of it, how long garbage was collected; other work is what is left. */
  readonly collectedMillis: number;
}

export interface StallReport {
  readonly millis: number;
  /** CPU of the main thread in its longest turn, collections of garbage included. */
  readonly turnCpuMillis: number;
  readonly stalls: readonly Stall[];
  /** Every collection, how long: by kind (1 young, 4 whole heap, 8 a step of marking, 16 weak callbacks). */
  readonly collections: readonly { readonly kind: number; readonly millis: number }[];
  /** Where the thread was in the stalls that worked for long, most first, in milliseconds of all of them. */
  readonly work: readonly (readonly [place: string, millis: number])[];
}

const STALL_MILLIS = 3;
/** Stalls that did so much beside waiting and collecting garbage are looked into. */
const WORKED_MILLIS = 5;
const SAMPLING_MICROS = 500;
/** CPU of the thread in nanoseconds, and how long it waited for a core. */
const schedstat = openSync(`/proc/${process.pid}/task/${process.pid}/schedstat`, "r");
const text = Buffer.alloc(64);
const path = process.env["STALLS_PATH"]!;

let since = performance.now();
let before = { at: since, waited: waitedMillis(), cpu: threadCpuMillis() };
let turnCpuMillis = 0;
let late: { from: number; to: number; waited: number; cpu: number }[] = [];
let collected: { from: number; millis: number; kind: number }[] = [];

new PerformanceObserver((list) => {
  for (const { startTime, duration, detail } of list.getEntries() as PerformanceNodeEntry[])
    collected.push({ from: startTime, millis: duration, kind: (detail as { kind: number }).kind });
}).observe({ entryTypes: ["gc"] });

setInterval(() => {
  const now = { at: performance.now(), waited: waitedMillis(), cpu: threadCpuMillis() };
  const cpu = now.cpu - before.cpu;
  turnCpuMillis = Math.max(turnCpuMillis, cpu);
  if (now.at - before.at > STALL_MILLIS)
    late.push({ from: before.at, to: now.at, waited: now.waited - before.waited, cpu });
  before = now;
}, 1).unref();

process.on("SIGUSR2", () => {
  // Entries of the observer come a turn after what they describe.
  setTimeout(writeReport, 50);
});

const profiler = process.env["STALLS_PROFILED"] === "0" ? undefined : new Session();
profiler?.connect();
profiler?.post("Profiler.enable");
profiler?.post("Profiler.setSamplingInterval", { interval: SAMPLING_MICROS });
profiler?.post("Profiler.start");

/** What lies within the stalls; profiling goes on anew. */
function workIn(spans: readonly Span[]): StallReport["work"] {
  let work: StallReport["work"] = [];
  // Of a session in the same process, the answer comes before `post` returns.
  profiler?.post("Profiler.stop", (error, answer) => {
    if (error === null) work = heaviestIn(answer.profile, spans);
  });
  profiler?.post("Profiler.start");
  return work;
}

function writeReport(): void {
  const now = performance.now();
  const stalls = late.map(({ from, to, waited, cpu }): Stall => {
    const within = collected.filter((one) => one.from >= from && one.from < to);
    return {
      millis: to - from,
      cpuMillis: cpu,
      waitedMillis: waited,
      collectedMillis: within.reduce((sum, one) => sum + one.millis, 0),
    };
  });
  const collections = collected.map(({ kind, millis }) => ({ kind, millis }));
  const long = late.filter((_, i) => workedMillis(stalls[i]!) > WORKED_MILLIS);
  const work = workIn(long.map(({ from, to }) => ({ fromMicros: monotonic(from), toMicros: monotonic(to) })));
  const report: StallReport = { millis: now - since, turnCpuMillis, stalls, collections, work };
  writeFileSync(path, JSON.stringify(report));
  setTimeout(() => {
    [since, late, collected, turnCpuMillis] = [performance.now(), [], [], 0];
  }, FORGOTTEN_MILLIS);
}

function workedMillis({ millis, waitedMillis: waited, collectedMillis }: Stall): number {
  return millis - waited - collectedMillis;
}

/** Of the clock that profiles have, for a time of `performance.now()`. */
function monotonic(millis: number): number {
  return Number(process.hrtime.bigint()) / 1e3 + 1e3 * (millis - performance.now());
}

function waitedMillis(): number {
  const length = readSync(schedstat, text, 0, text.length, 0);
  return Number(text.toString("latin1", 0, length).split(" ")[1]) / 1e6;
}
