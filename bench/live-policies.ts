/**
 * Policies live, over sockets, before a fresh fleet of emulated engines of four kinds that the router knows nothing of, on
 * the half of three workloads that no default was chosen on.
 *
 *     BENCH_TRACES=FOLDER npx node bench/live-policies.ts [--cases conversations,agents,"unshared chat"]
 *         [--policies gnomon,...] [--seeds 0,1,2] [--requests N] [--time-scale 0.5] [--minutes N] [--port 19500]
 *         [--results FILE]
 *
 * FOLDER as of default-choice.ts. Everything runs at half its speed, unless --time-scale is 1, so that two cores carry it; a
 * run takes about a minute, all of them an hour and a quarter. Each result is added to FILE, a line each, and what is there
 * is not run again, so that a run can be stopped; with --minutes no run begins after so many. All cases and policies come
 * with one seed before the next. Prints the default beside the best of the others in each column, every policy's figures,
 * and in which runs the machine did not keep up: these show little.
 */
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { liveRun, troubles } from "./closed-loop/live-run.ts";
import { writeWarmUp } from "./closed-loop/warm-up.ts";
import { type Cell, COLUMNS } from "./default-choice/cell.ts";
import { choiceWorkload } from "./default-choice/choice-workload.ts";
import { wholeUntil } from "./default-choice/sessions.ts";
import { caseTable } from "./default-choice/tables.ts";
import { LIVE_CASES, type LiveCase } from "./live-policies/live-case.ts";
import { CONTEXT_TOKENS_MAX, mismatchedFleet } from "./live-policies/mismatched-fleet.ts";

const { values: flags } = parseArgs({
  options: {
    cases: { type: "string", default: LIVE_CASES.map(({ name }) => name).join(",") },
    policies: { type: "string", default: "gnomon,gnomon-added,lmetric,unified,llm-d,dynamo,least-loaded" },
    seeds: { type: "string", default: "0,1,2" },
    requests: { type: "string" },
    "time-scale": { type: "string", default: "0.5" },
    minutes: { type: "string", default: "Infinity" },
    port: { type: "string", default: "19500" },
    results: { type: "string", default: "live-policies.jsonl" },
  },
});
const DEFAULT = "gnomon";
const ENGINES = 8;
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const timeScale = Number(flags["time-scale"]);
const endsAt = performance.now() + Number(flags.minutes) * 60_000;
const seeds = flags.seeds.split(",").map(Number);
const policies = flags.policies.split(",");
for (const policy of policies) loadProfile(policy);
const wanted = flags.cases.split(",");
const cases = LIVE_CASES.filter(({ name }) => wanted.includes(name)).map((one) =>
  flags.requests === undefined ? one : { ...one, requests: Number(flags.requests) },
);

interface LiveCell extends Cell {
  /** Why the machine did not keep up; empty where it did. */
  readonly troubles: readonly string[];
  /** Answers that were none, by outcome. */
  readonly failures: Readonly<Record<string, number>>;
}

const out = mkdtempSync(join(tmpdir(), "gnomon-live-policies-"));
try {
  for (const seed of seeds) for (const one of cases) await runs(one, seed);
} finally {
  rmSync(out, { recursive: true, force: true });
}
show(known());

function known(): LiveCell[] {
  if (!existsSync(flags.results)) return [];
  const lines = readFileSync(flags.results, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LiveCell);
}

function digestOf(one: LiveCase): string {
  return JSON.stringify([
    one.requests,
    one.rateScale,
    one.sessionsPerSecond,
    one.tokenScale,
    one.outputScale,
    timeScale,
    CONTEXT_TOKENS_MAX,
  ]);
}

async function runs(one: LiveCase, seed: number): Promise<void> {
  const digest = digestOf(one);
  const isThere = (policy: string): boolean =>
    known().some(
      (cell) => cell.name === one.name && cell.seed === seed && cell.policy === policy && cell.digest === digest,
    );
  const left = policies.filter((policy) => !isThere(policy));
  if (left.length === 0 || performance.now() > endsAt) return;
  const folder = join(out, `${one.name.replaceAll(" ", "-")}-${seed}`);
  mkdirSync(folder, { recursive: true });
  const [workload, warmUp] = [join(folder, "workload.jsonl"), join(folder, "warm-up.jsonl")];
  const all = await choiceWorkload(one, "held-out", seed, one.requests, traces);
  const requests = wholeUntil(all, (each) => each.promptTokens + each.outputTokens <= CONTEXT_TOKENS_MAX);
  writeFileSync(workload, workloadFileHeader([`${one.name}, held out`]) + requests.map(workloadLine).join(""));
  writeWarmUp(warmUp, timeScale);
  const fleet = mismatchedFleet(traces, folder);
  for (const policy of left) {
    const before = performance.now();
    if (before > endsAt) return;
    const { report, machine } = await liveRun({
      one: { engines: ENGINES, engine: "" },
      fleet,
      profile: policy,
      workload,
      warmUp,
      folder,
      port: Number(flags.port),
      timeScale,
      seed,
    });
    const { ttftMillis, e2eMillis, outcomes } = report;
    const cell: LiveCell = {
      name: one.name,
      half: "held-out",
      seed,
      policy,
      digest,
      requests: requests.length,
      e2eMean: (e2eMillis.mean ?? NaN) * timeScale,
      ttftMean: (ttftMillis.mean ?? NaN) * timeScale,
      e2eP99: (e2eMillis.p99 ?? NaN) * timeScale,
      ttftP99: (ttftMillis.p99 ?? NaN) * timeScale,
      troubles: troubles(machine),
      failures: Object.fromEntries(Object.entries(outcomes).filter(([outcome]) => outcome !== "ok")),
    };
    appendFileSync(flags.results, `${JSON.stringify(cell)}\n`);
    const seconds = ((performance.now() - before) / 1_000).toFixed(0);
    process.stderr.write(`${one.name}, seed ${seed}, ${policy}: ${seconds} s ${cell.troubles.join(", ")}\n`);
  }
}

function show(all: readonly LiveCell[]): void {
  const digests = new Map(cases.map((one) => [one.name, digestOf(one)]));
  const current = all.filter(
    (cell) => digests.get(cell.name) === cell.digest && seeds.includes(cell.seed) && policies.includes(cell.policy),
  );
  // Of a case and seed all policies or none, or they would not be of the same traffic.
  const cells = current.filter(({ name, seed }) =>
    policies.every((policy) =>
      current.some((cell) => cell.name === name && cell.seed === seed && cell.policy === policy),
    ),
  );
  const others = policies.filter((policy) => policy !== DEFAULT);
  if (policies.includes(DEFAULT) && others.length > 0) console.log(`${caseTable(cells, DEFAULT, others)}\n`);
  const line = (texts: readonly (string | number)[]): string => `| ${texts.join(" | ")} |`;
  console.log(
    line(["case", "policy", "E2E ms mean", "TTFT ms mean", "E2E ms p99", "TTFT ms p99", "failed", "not kept up"]),
  );
  console.log(line(Array.from({ length: 8 }, () => "---")));
  for (const { name } of cases)
    for (const policy of policies) {
      const own = cells.filter((cell) => cell.name === name && cell.policy === policy);
      if (own.length === 0) continue;
      const figures = COLUMNS.map((column) => spread(own.map((cell) => cell[column])));
      const failed = own.flatMap(({ failures }) => Object.entries(failures).map(([why, count]) => `${count} ${why}`));
      const late = own.filter((cell) => cell.troubles.length > 0).length;
      console.log(line([name, policy, ...figures, failed.join(", ") || 0, `${late} of ${own.length}`]));
    }
}

/** The mean, and half the range over the seeds. */
function spread(values: readonly number[]): string {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return `${mean.toFixed(0)}±${((Math.max(...values) - Math.min(...values)) / 2).toFixed(0)}`;
}
