import { percentile } from "#sim/result/distribution.ts";
import type { GoldenCase, GoldenDecision } from "./golden-case.ts";
import type { GoldenRun, SeenDecision } from "./run-case.ts";

/** Relative error that sums and interpolated percentiles may have. Everything counted in microseconds is exact. */
const RELATIVE_ERROR_MAX = 1e-9;

/** Every difference between a run and what its case expects, a line each. */
export function differences(golden: GoldenCase, run: GoldenRun): string[] {
  return [
    ...requestDifferences(golden, run),
    ...decisionDifferences(golden, run),
    ...counterDifferences(golden, run),
    ...figureDifferences("aggregate", golden.expected.aggregate, run, undefined),
    ...golden.expected.perInstance.flatMap((figures, number) =>
      figureDifferences(`instance ${number}`, figures, run, number),
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

/** Row of each request of the file: rows are in order of arrival. */
function rowsOf({ simulation }: GoldenRun): Map<number, number> {
  return new Map(simulation.outcomes.ids.map((id, row) => [Number(id.slice("request_".length)), row]));
}

function requestDifferences({ expected }: GoldenCase, run: GoldenRun): string[] {
  const { outcomes } = run.simulation;
  const rows = rowsOf(run);
  const gaps = gapSums(run);
  return expected.perRequest.flatMap((want, number) => {
    const row = rows.get(number);
    if (row === undefined) return want.status === "completed" ? [`request ${number}: did not arrive`] : [];
    const status = STATUS_NAMES[outcomes.statusOf(row)] ?? outcomes.statusOf(row);
    const answered = status === "completed";
    const tokens = Math.max(1, outcomes.outputTokens[row]! - 1);
    const got = {
      instance: outcomes.endpoint[row]!,
      ttft: zeroIfNone(outcomes.ttft[row]!),
      e2e: answered ? outcomes.e2e[row]! : 0,
      delay: zeroIfNone(outcomes.queueDelay[row]!),
    };
    const lines = want.status === status ? [] : [`request ${number} status: ${status}, expected ${want.status}`];
    if (status === "dropped") return lines;
    for (const key of ["instance", "ttft", "e2e", "delay"] as const) {
      if (want[key] !== undefined && want[key] !== got[key])
        lines.push(`request ${number} ${key}: ${got[key]}, expected ${want[key]}`);
    }
    const itl = answered ? (gaps.get(row) ?? 0) / tokens / 1000 : 0;
    if (want.itlMeanMillis !== undefined && !close(itl, want.itlMeanMillis))
      lines.push(`request ${number} itl_mean_ms: ${itl}, expected ${want.itlMeanMillis}`);
    return lines;
  });
}

function gapSums({ simulation: { ears } }: GoldenRun): Map<number, number> {
  const sums = new Map<number, number>();
  for (let i = 0; i < ears.gaps.length; i++) {
    const row = ears.gapRows.at(i);
    sums.set(row, (sums.get(row) ?? 0) + ears.gaps.at(i));
  }
  return sums;
}

function decisionDifferences({ expected, engine, requests }: GoldenCase, { decisions }: GoldenRun): string[] {
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
      ["cached_blocks", cachedBlocks(got, want, prompt, engine.blockTokens), want.cached_blocks],
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
  run: GoldenRun,
  instance: number | undefined,
): string[] {
  const got = figuresOf(run, instance);
  return Object.entries(got).flatMap(([name, value]) => {
    const expected = want[name];
    if (typeof expected !== "number" || close(value, expected)) return [];
    return [`${where} ${name}: ${value}, expected ${expected}`];
  });
}

function figuresOf(run: GoldenRun, instance: number | undefined): Record<string, number> {
  const { outcomes, ears, fleet, clock } = run.simulation;
  const rows = [...outcomes.ids.keys()].filter((row) => instance === undefined || outcomes.endpoint[row] === instance);
  const engines = [...fleet.specs.keys()].filter((number) => instance === undefined || number === instance);
  const gauges = engines.map((number) => fleet.gauges(clock + 1, number));
  const seconds = Math.max(...engines.map((number) => ears.lastEndAt[number]!)) / 1e6;
  const done = rows.filter((row) => outcomes.isCompleted(row));
  const count = (...statuses: readonly string[]) =>
    rows.filter((row) => statuses.includes(outcomes.statusOf(row))).length;
  const served = rows.filter((row) => !["too-long", "never-fits", "rejected"].includes(outcomes.statusOf(row)));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const output = sum(done.map((row) => outcomes.outputTokens[row]!));
  const own = new Set(rows);
  const gaps = [...ears.gaps.view()].filter((_, i) => own.has(ears.gapRows.at(i)));
  const delays = rows.map((row) => outcomes.queueDelay[row]!).filter((delay) => !Number.isNaN(delay));
  const preemptions = sum(gauges.map((gauge) => gauge.preemptions));
  return {
    completed_requests: done.length,
    injected_requests: instance === undefined ? outcomes.length : rows.length,
    dropped_unservable: count("too-long", "never-fits"),
    timed_out_requests: count("timed-out"),
    total_input_tokens: sum(served.map((row) => outcomes.promptTokens[row]!)),
    total_output_tokens: output,
    vllm_estimated_duration_s: seconds,
    responses_per_sec: done.length / seconds,
    tokens_per_sec: output / seconds,
    preemption_count: preemptions,
    ...(instance === undefined && {
      cache_hit_rate: mean(
        gauges.map(({ blockHits, blockMisses }) => blockHits / Math.max(1, blockHits + blockMisses)),
      ),
    }),
    ...millis(
      "e2e",
      done.map((row) => outcomes.e2e[row]!),
    ),
    ...millis(
      "ttft",
      rows.map((row) => outcomes.ttft[row]!).filter((ttft) => !Number.isNaN(ttft)),
    ),
    ...millis("itl", gaps),
    scheduling_delay_p99_ms: percentile(Float64Array.from(delays).sort(), 99) / 1000,
  };
}

function millis(name: string, micros: readonly number[]): Record<string, number> {
  if (micros.length === 0) return {};
  const sorted = Float64Array.from(micros).sort();
  return {
    [`${name}_mean_ms`]: mean(micros) / 1000,
    [`${name}_p90_ms`]: percentile(sorted, 90) / 1000,
    [`${name}_p95_ms`]: percentile(sorted, 95) / 1000,
    [`${name}_p99_ms`]: percentile(sorted, 99) / 1000,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function zeroIfNone(micros: number): number {
  return Number.isNaN(micros) ? 0 : micros;
}

function close(value: number, expected: number): boolean {
  return Math.abs(value - expected) <= RELATIVE_ERROR_MAX * Math.abs(expected);
}
