import { type Answers, peerAnswers } from "./answers.ts";
import { figuresOf } from "./figures.ts";
import type { GoldenCase, GoldenDecision } from "./golden-case.ts";
import type { GoldenRun, SeenDecision } from "./run-case.ts";

/** Relative error that sums and interpolated percentiles may have. Everything counted in microseconds is exact. */
const RELATIVE_ERROR_MAX = 1e-9;

/** Every difference between a run and what its case expects, a line each. */
export function differences(golden: GoldenCase, run: GoldenRun): string[] {
  const answers = peerAnswers(golden, run);
  const { aggregate, perInstance } = golden.expected;
  return [
    ...requestDifferences(golden, run, answers),
    ...decisionDifferences(golden, run),
    ...counterDifferences(golden, run),
    ...figureDifferences("aggregate", aggregate, figuresOf(golden, run, answers, undefined)),
    ...perInstance.flatMap((figures, number) =>
      figureDifferences(`instance ${number}`, figures, figuresOf(golden, run, answers, number)),
    ),
  ];
}

const STATUS_NAMES: Readonly<Record<string, string>> = {
  completed: "completed",
  length: "completed",
  "too-long": "dropped",
  "never-fits": "dropped",
  "timed-out": "timed_out",
  rejected: "rejected",
  open: "running",
};
const ENDS = new Set(Object.values(STATUS_NAMES).filter((name) => name !== "running"));

/** Row of each request of the file: rows are in order of arrival. */
function rowsOf({ simulation }: GoldenRun): Map<number, number> {
  return new Map(simulation.outcomes.ids.map((id, row) => [Number(id.slice("request_".length)), row]));
}

function requestDifferences(golden: GoldenCase, run: GoldenRun, answers: Answers): string[] {
  const { outcomes } = run.simulation;
  const rows = rowsOf(run);
  return golden.expected.perRequest.flatMap((want, number) => {
    const row = rows.get(number);
    if (row === undefined) return ENDS.has(want.status) ? [`request ${number}: did not arrive`] : [];
    const status = STATUS_NAMES[outcomes.statusOf(row)] ?? outcomes.statusOf(row);
    // Where an unended request is at the horizon goes by many names.
    const same = status === "running" ? !ENDS.has(want.status) : want.status === status;
    const tokens = Math.max(1, outcomes.outputTokens[row]! - 1);
    const got = {
      instance: outcomes.endpoint[row]!,
      ttft: zeroIfNone(outcomes.ttft[row]!),
      e2e: answers.e2e[row]!,
      delay: zeroIfNone(outcomes.queueDelay[row]!),
    };
    const lines = same ? [] : [`request ${number} status: ${status}, expected ${want.status}`];
    if (status === "dropped" || status === "rejected") return lines;
    for (const key of ["instance", "ttft", "e2e", "delay"] as const) {
      if (want[key] !== undefined && want[key] !== got[key])
        lines.push(`request ${number} ${key}: ${got[key]}, expected ${want[key]}`);
    }
    const itl = sum(answers.gaps[row]!) / tokens / 1000;
    if (want.itlMeanMillis !== undefined && !close(itl, want.itlMeanMillis))
      lines.push(`request ${number} itl_mean_ms: ${itl}, expected ${want.itlMeanMillis}`);
    return lines;
  });
}

function decisionDifferences({ expected, engine, requests, prefixes }: GoldenCase, { decisions }: GoldenRun): string[] {
  if (expected.decisions.length === 0) return [];
  const lines =
    decisions.length === expected.decisions.length
      ? []
      : [`decisions: ${decisions.length}, expected ${expected.decisions.length}`];
  expected.decisions.forEach((want, number) => {
    const got = decisions[number];
    if (got === undefined) return;
    const prompt = requests[want.request_id]?.promptTokens ?? 0;
    const usable = engine.kvBlocks - 1;
    const compared: readonly (readonly [string, unknown, unknown])[] = [
      ["t_us", got.at, want.t_us],
      ["request_id", got.request, want.request_id],
      ["queue_depth", got.queue, want.queue_depth],
      ["batch_size", got.batch, want.batch_size],
      ["in_flight", got.inFlight, want.in_flight],
      ["kv_utilization", got.kvUtilization, want.kv_utilization],
      ["free_kv_blocks", freeBlocks(got, want, usable), want.free_kv_blocks],
      ["effective_load", got.queue.map((q, i) => q + got.batch[i]! + got.inFlight[i]!), want.effective_load],
      // Where the router goes by its own index it knows nothing of the caches.
      [
        "cached_blocks",
        cachedBlocks(got, want, prompt, engine.blockTokens),
        prefixes.kind === "index" ? undefined : want.cached_blocks,
      ],
      ["scorers", got.values, want.scorers],
      ["total", got.totals, want.total],
      ["tied", tiedOf(got.totals), want.tied],
      ["chosen", got.chosen, want.chosen],
    ];
    for (const [name, have, wanted] of compared) {
      if (wanted !== undefined && JSON.stringify(have) !== JSON.stringify(wanted))
        lines.push(`decision ${number} ${name}: ${JSON.stringify(have)}, expected ${JSON.stringify(wanted)}`);
    }
  });
  return lines;
}

/** An engine that was never read has no free blocks there. */
function freeBlocks(got: SeenDecision, want: GoldenDecision, usable: number): number[] {
  return got.kvUtilization.map((used, i) =>
    used === 0 && want.free_kv_blocks?.[i] === 0 ? 0 : usable - Math.round(used * usable),
  );
}

/** Of a prompt that is held whole the router counts one block less: its last token is computed anew. */
function cachedBlocks(got: SeenDecision, want: GoldenDecision, prompt: number, blockTokens: number): number[] {
  return got.cachedTokens.map((tokens, i) => {
    const blocks = tokens / blockTokens;
    const whole = (want.cached_blocks?.[i] ?? 0) * blockTokens >= prompt;
    return whole && (blocks + 1) * blockTokens >= prompt ? blocks + 1 : blocks;
  });
}

function tiedOf(totals: readonly number[]): number[] {
  const best = Math.max(...totals);
  return totals.flatMap((total, i) => (total === best ? [i] : []));
}

function counterDifferences({ expected }: GoldenCase, { simulation }: GoldenRun): string[] {
  const gauges = simulation.fleet.specs.map((_, number) => simulation.fleet.gauges(simulation.clock + 1, number));
  const lists = [
    ["steps", gauges.map(({ steps }) => steps), expected.steps],
    ["block hits", gauges.map(({ blockHits }) => blockHits), expected.blockHits],
    ["block misses", gauges.map(({ blockMisses }) => blockMisses), expected.blockMisses],
  ] as const;
  return lists.flatMap(([name, got, want]) =>
    want === undefined || JSON.stringify(got) === JSON.stringify(want)
      ? []
      : [`${name}: ${JSON.stringify(got)}, expected ${JSON.stringify(want)}`],
  );
}

/** Figures that are compared, by name; others of the vectors say how it was made, not what came out. */
function figureDifferences(
  where: string,
  want: Readonly<Record<string, unknown>>,
  got: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(got).flatMap(([name, value]) => {
    const expected = want[name];
    if (typeof expected !== "number" || close(value, expected)) return [];
    return [`${where} ${name}: ${value}, expected ${expected}`];
  });
}

function zeroIfNone(micros: number): number {
  return Number.isNaN(micros) ? 0 : micros;
}

function close(value: number, expected: number): boolean {
  return Math.abs(value - expected) <= RELATIVE_ERROR_MAX * Math.abs(expected);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
