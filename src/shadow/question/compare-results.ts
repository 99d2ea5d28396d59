import * as z from "zod";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import { distribution } from "#sim/result/distribution.ts";
import { timesMeet } from "#sim/result/slo.ts";
import type { PolicyFigures } from "./compare.ts";
import type { Metric } from "../figure/metric.ts";
import { tpotOf } from "../calibrate/evidence.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";

/** The part of each format that is compared; the rest is let through. */
const summary = z.object({ mean: z.number(), p50: z.number(), p99: z.number() });
const optionalSummary = summary.or(z.object({ count: z.literal(0) }).transform(() => undefined)).optional();
const driveReport = z.object({
  ttftMillis: optionalSummary,
  tpotMillis: optionalSummary,
  e2eMillis: optionalSummary,
  hitRatio: z.object({ engine: z.number().nullable() }),
});
const expectation = z.object({ expected: z.number() });
const expectations = z.object({ mean: expectation, p50: expectation, p99: expectation }).optional();
const whatIf = z.object({
  candidates: z.array(
    z.object({
      name: z.string(),
      predicted: z.object({ ttftMicros: optionalSummary, tpotMicros: optionalSummary, e2eMicros: optionalSummary }),
      intervals: z.object({ ttftMicros: expectations, tpotMicros: expectations, e2eMicros: expectations }).optional(),
      hitRatio: z.number(),
      goodput: z.number().optional(),
    }),
  ),
});
const byClass = z.object({ all: optionalSummary });
const simulation = z.object({
  policyId: z.string(),
  metrics: z.object({
    ttftMicros: byClass,
    tpotMicros: byClass,
    e2eMicros: byClass,
    cacheHitRate: z.object({ gpu: z.number(), cpu: z.number() }),
    sloAttainmentAll: z.number().optional(),
  }),
});

/** BLIS's SimResults, request by request. */
const results = z
  .array(z.object({ ttft_us: z.number(), e2e_us: z.number(), output_tokens: z.number(), itl_mean_us: z.number() }))
  .min(1);

type Summary = Pick<Distribution, "mean" | "p50" | "p99"> | undefined;

interface Summaries {
  readonly ttft: Summary;
  readonly tpot: Summary;
  readonly e2e: Summary;
  readonly hitRatio?: number | undefined;
  readonly goodput?: number | undefined;
}

export const RESULT_FORMATS =
  "a report of drive --json, results of simulate, an answer of what-if --json, or BLIS's SimResults";

/**
 * Policies' figures in one file of results; `name` is the policy's where the file does not name it. Undefined for JSON
 * of another shape.
 */
export function figuresInResults(value: unknown, name: string): PolicyFigures[] | undefined {
  const asked = whatIf.safeParse(value);
  if (asked.success) {
    return asked.data.candidates.map(({ name: policy, predicted, intervals, hitRatio, goodput }) => {
      const of = (metric: Metric) => expected(predicted[metric], intervals?.[metric]);
      const times = { ttft: of("ttftMicros"), tpot: of("tpotMicros"), e2e: of("e2eMicros") };
      return policyFigures(policy, { ...times, hitRatio, goodput });
    });
  }
  const simulated = simulation.safeParse(value);
  if (simulated.success) {
    const { policyId, metrics } = simulated.data;
    const { ttftMicros, tpotMicros, e2eMicros, cacheHitRate, sloAttainmentAll } = metrics;
    const times = { ttft: ttftMicros.all, tpot: tpotMicros.all, e2e: e2eMicros.all };
    const hitRatio = cacheHitRate.gpu + cacheHitRate.cpu;
    return [policyFigures(policyId, { ...times, hitRatio, goodput: sloAttainmentAll })];
  }
  const listed = results.safeParse(value);
  if (listed.success) return [policyFigures(name, timesOf(listed.data))];
  const driven = driveReport.safeParse(value);
  if (!driven.success) return undefined;
  const { ttftMillis, tpotMillis, e2eMillis, hitRatio } = driven.data;
  const times = { ttft: ttftMillis, tpot: tpotMillis, e2e: e2eMillis };
  return [policyFigures(name, { ...times, hitRatio: hitRatio.engine ?? undefined }, MICROS_PER_MILLI)];
}

/** What the replicas lead to expect, where there are any. */
function expected(predicted: Summary, drawn: z.infer<typeof expectations>): Summary {
  if (drawn === undefined) return predicted;
  return { mean: drawn.mean.expected, p50: drawn.p50.expected, p99: drawn.p99.expected };
}

function timesOf(list: z.infer<typeof results>): Summaries {
  const several = list.filter(({ output_tokens: tokens }) => tokens > 1);
  return {
    ttft: distribution(Float64Array.from(list, (one) => one.ttft_us)),
    tpot: distribution(Float64Array.from(several, (one) => one.itl_mean_us)),
    e2e: distribution(Float64Array.from(list, (one) => one.e2e_us)),
  };
}

/** Figures of what really happened in a trace, of requests that were answered whole. */
export function figuresOfRun({ observed, workload }: RecordedRun, policy: string): PolicyFigures {
  const ok = observed.filter((one) => one.ok);
  const figuresOf = (values: readonly number[]) =>
    distribution(Float64Array.from(values.filter((value) => value >= 0)));
  let cached = 0;
  let prompt = 0;
  observed.forEach((one, i) => {
    if (!one.ok || Number.isNaN(one.cachedTokens)) return;
    cached += one.cachedTokens;
    prompt += workload[i]!.promptTokens;
  });
  return policyFigures(policy, {
    ttft: figuresOf(ok.map(({ ttftMicros }) => ttftMicros)),
    tpot: figuresOf(ok.map(tpotOf)),
    e2e: figuresOf(ok.map(({ e2eMicros }) => e2eMicros)),
    hitRatio: prompt === 0 ? undefined : cached / prompt,
    goodput: goodputOfRun(observed, workload),
  });
}

/** Of the requests that stated targets; undefined where none did. */
function goodputOfRun(observed: RecordedRun["observed"], workload: RecordedRun["workload"]): number | undefined {
  let [promised, met] = [0, 0];
  observed.forEach((one, i) => {
    const { slo } = workload[i]!;
    if (slo === undefined) return;
    promised++;
    if (one.ok && timesMeet({ ttft: one.ttftMicros, tpot: tpotOf(one), e2e: one.e2eMicros }, slo)) met++;
  });
  return promised === 0 ? undefined : met / promised;
}

/** `micros` is how many microseconds the unit of the times has. */
function policyFigures(policy: string, { ttft, tpot, e2e, hitRatio, goodput }: Summaries, micros = 1): PolicyFigures {
  return {
    policy,
    figures: {
      ...(ttft && { ttftMean: ttft.mean * micros, ttftP50: ttft.p50 * micros, ttftP99: ttft.p99 * micros }),
      ...(tpot && { tpotMean: tpot.mean * micros, tpotP99: tpot.p99 * micros }),
      ...(e2e && { e2eMean: e2e.mean * micros, e2eP50: e2e.p50 * micros, e2eP99: e2e.p99 * micros }),
      ...(hitRatio === undefined ? {} : { hitRatio }),
      ...(goodput === undefined ? {} : { goodput }),
    },
  };
}
