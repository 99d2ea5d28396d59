/**
 * The four contrasts that B3's policies were made for, in one table: what cache awareness, session affinity, gated affinity
 * and the mass of long sessions each are worth to LMetric.
 *
 *     BENCH_TRACES=<folder> npx node bench/contrasts.ts [--workload mooncake|weka|lmcache] [--load moderate|high]
 *         [--requests 3000] [--turns 8] [--engines 8] [--seed 42]
 *
 * Cluster and traces are those of `profiles`; gauges are read every second, which these policies do not look at. Every
 * policy runs with prompts in blocks of 16 tokens, as engines have them, and of 512, as B3's proxy has them. `capped` is
 * b3-lmetric on the first turns of each session. As that leaves requests out, `thinned` stands beside it: b3-lmetric on
 * whole sessions, drawn until they have as many requests as `capped` has; what the two differ by is the mass of sessions
 * and not the load.
 */
import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { Tally } from "#trace/transform/tally.ts";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { CASES, type Study } from "./profiles/case.ts";
import { caseWorkload } from "./profiles/case-workload.ts";
import { type Figures, figuresOf } from "./profiles/figures.ts";
import { runCase } from "./profiles/run-case.ts";

const { values } = parseArgs({
  options: {
    workload: { type: "string", default: "weka" },
    load: { type: "string", default: "moderate" },
    requests: { type: "string", default: "3000" },
    turns: { type: "string", default: "8" },
    engines: { type: "string", default: "8" },
    seed: { type: "string", default: "42" },
  },
});
const one = CASES.find(({ workload, load }) => workload === values.workload && load === values.load);
if (one === undefined) throw new Error(`no case ${values.workload} at ${values.load}`);
const turnsMax = Number(values.turns);
const study: Study = {
  seed: Number(values.seed),
  requestsMax: Number(values.requests),
  half: "all",
  engines: Number(values.engines),
  fleet: "even",
  scrapeMicros: MICROS_PER_SECOND,
};
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
if (!existsSync(traces)) throw new Error(`no traces in ${traces}; set BENCH_TRACES to their folder`);

const whole = await caseWorkload(one, study, traces);
const capped = await capOf(whole);
const thinned = thinnedTo(whole, capped.length);
process.stdout.write(`${values.workload}, ${values.load} load, ${study.engines} engines, seed ${values.seed}\n`);
mass("all", whole);
mass(`capped at ${turnsMax}`, capped);
mass("thinned", thinned);

const RUNS = [
  ["lmetric", "b3-lmetric", whole],
  ["load_only", "load-only", whole],
  ["sticky", "sticky", whole],
  ["unified", "unified", whole],
  ["capped", "b3-lmetric", capped],
  ["thinned", "b3-lmetric", thinned],
] as const;
for (const blockTokens of [16, 512]) {
  const figures = new Map<string, Figures>();
  const head = ["policy", "hits %", "TTFT ms mean", "p99", "E2E s mean", "p99", "max/mean in flight", "not served"];
  process.stdout.write(
    `\nBlocks of ${blockTokens} tokens\n\n| ${head.join(" | ")} |\n${"|---".repeat(head.length)}|\n`,
  );
  for (const [name, profile, requests] of RUNS) {
    const row = figuresOf(runCase(one, study, requests, loadProfile(profile), MICROS_PER_SECOND, { blockTokens }));
    figures.set(name, row);
    process.stdout.write(`| ${[name, ...cells(row)].join(" | ")} |\n`);
  }
  process.stdout.write(
    "\n| contrast | isolates | hits | TTFT mean | E2E mean | max/mean in flight |\n|---|---|---|---|---|---|\n",
  );
  const contrast = (a: string, b: string, isolates: string) =>
    process.stdout.write(`| ${a} against ${b} | ${isolates} | ${differences(figures.get(a)!, figures.get(b)!)} |\n`);
  contrast("lmetric", "load_only", "cache awareness");
  contrast("lmetric", "sticky", "choosing per request in place of a session's endpoint");
  contrast("unified", "lmetric", "gated session affinity");
  contrast("capped", "lmetric", "sessions' mass and their load");
  contrast("capped", "thinned", "sessions' mass alone");
}

async function capOf(requests: readonly WorkloadRequest[]): Promise<WorkloadRequest[]> {
  const cap = new TurnCap(turnsMax);
  for (const request of requests) cap.add(request);
  const kept: WorkloadRequest[] = [];
  for await (const request of cap.cap(Readable.from(requests) as AsyncIterable<WorkloadRequest>, new Tally()))
    kept.push(request);
  return kept;
}

/** Whole sessions in an order that is drawn, those that a session spawned with it. */
function thinnedTo(requests: readonly WorkloadRequest[], count: number): WorkloadRequest[] {
  const bySession = Map.groupBy(requests, ({ session, index }) => (session === "" ? `alone ${index}` : session));
  const random = randomFor(study.seed, 7);
  const order = [...bySession.keys()].map((session) => ({ session, draw: random.next() }));
  const kept = new Set<string>();
  let left = count;
  for (const { session } of order.toSorted((a, b) => a.draw - b.draw)) {
    const turns = bySession.get(session)!;
    if (turns.length > left || turns.some(({ parent }) => parent !== undefined && !kept.has(parent.session))) continue;
    kept.add(session);
    left -= turns.length;
  }
  return requests
    .filter(({ session, index }) => kept.has(session === "" ? `alone ${index}` : session))
    .map((request, index) => ({ ...request, index }));
}

/** How the requests lie in sessions. */
function mass(name: string, requests: readonly WorkloadRequest[]): void {
  const bySession = Map.groupBy(requests, ({ session, index }) => (session === "" ? `alone ${index}` : session));
  const turns = [...bySession.values()].map((all) => all.length).toSorted((a, b) => a - b);
  const at = (share: number) => turns[Math.floor(share * (turns.length - 1))] ?? 0;
  const long = [...bySession.values()].filter((all) => all.length > turnsMax);
  const tokens = (all: readonly WorkloadRequest[]) => all.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  const heaviest = Math.max(...[...bySession.values()].map(tokens));
  const share = (part: number, of: number) => `${((100 * part) / of).toFixed(1)} %`;
  process.stdout.write(
    `${name}: ${requests.length} requests, ${turns.length} sessions; turns p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, ` +
      `max ${at(1)}; sessions above ${turnsMax} turns: ${long.length}, ` +
      `with ${share(long.flat().length, requests.length)} of the requests and ` +
      `${share(tokens(long.flat()), tokens(requests))} of the prompt tokens; ` +
      `the heaviest has ${share(heaviest, tokens(requests))}\n`,
  );
}

function cells({ hits, ttftMean, ttftP99, e2eMean, e2eP99, imbalance, unserved }: Figures): string[] {
  const times = [ttftMean / 1_000, ttftP99 / 1_000].map((millis) => millis.toFixed(0));
  const seconds = [e2eMean, e2eP99].map((micros) => (micros / MICROS_PER_SECOND).toFixed(2));
  return [(100 * hits).toFixed(1), ...times, ...seconds, imbalance.toFixed(2), String(unserved)];
}

/** Of the first against the second. */
function differences(a: Figures, b: Figures): string {
  const points = 100 * (a.hits - b.hits);
  const more = (own: number, other: number) => `${own >= other ? "+" : ""}${(100 * (own / other - 1)).toFixed(0)} %`;
  const hits = `${points >= 0 ? "+" : ""}${points.toFixed(1)} points`;
  return [hits, more(a.ttftMean, b.ttftMean), more(a.e2eMean, b.e2eMean), more(a.imbalance, b.imbalance)].join(" | ");
}
