import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type {
  ShadowCandidate,
  ShadowDifference,
  ShadowEvaluation,
  ShadowFigures,
} from "#live/metrics/shadow-status.ts";
import type { Evaluated } from "#shadow/thread/host.ts";
import type { Interval } from "#shadow/figure/interval.ts";
import { METRICS } from "#shadow/figure/metric.ts";
import type { CandidateAnswer } from "#shadow/question/what-if.ts";
import { byMetricName } from "./live-metric.ts";

/** What the latest evaluation came to, for status and metrics. */
export function evaluationOf({ answer, millis, cpuMicros, ...about }: Evaluated): ShadowEvaluation {
  const { inForce, requests, replicas, modelError, uncompared, coverage, candidates } = answer;
  return {
    inForce,
    requests,
    millis: Math.round(millis),
    cpuMillis: Math.round(cpuMicros / MICROS_PER_MILLI),
    modelError: byMetricName(modelError, ({ meanRelative }) => meanRelative),
    measuredSeconds: byMetricName(modelError, ({ observedMean }) => observedMean / MICROS_PER_SECOND),
    uncompared,
    inside: byMetricName(coverage, (figures) => perFigure(figures, ({ inside }) => inside)),
    replicas,
    withoutIntervals: about.withoutIntervals,
    fleetEventsMerged: about.fleetEventsMerged,
    candidates: candidates.map(candidateOf),
  };
}

function candidateOf(candidate: CandidateAnswer): ShadowCandidate {
  const { name, hitRatio, predicted, intervals } = candidate;
  return {
    name,
    hitRatio,
    predictedSeconds: byMetricName(predicted, ({ mean }) => mean / MICROS_PER_SECOND),
    intervalSeconds: byMetricName(intervals, (figures) =>
      perFigure(figures, ({ expected, ...ends }) => ({ expected: expected / MICROS_PER_SECOND, ...seconds(ends) })),
    ),
    differenceSeconds: byMetricName(differences(candidate), (difference) => difference),
  };
}

function differences({ difference, differenceInterval, exceedsNoise }: CandidateAnswer) {
  const entries = METRICS.map((metric): [typeof metric, ShadowDifference | undefined] => {
    const [over, on] = [difference[metric], differenceInterval[metric]];
    if (over === undefined) return [metric, undefined];
    return [
      metric,
      {
        mean: over.mean / MICROS_PER_SECOND,
        ...seconds(over),
        ...(on && { onOtherEngines: seconds(on) }),
        exceedsNoise: exceedsNoise[metric] ?? false,
      },
    ];
  });
  return Object.fromEntries(entries) as Record<(typeof METRICS)[number], ShadowDifference | undefined>;
}

function perFigure<T, R>({ mean, p50, p99 }: ShadowFigures<T>, of: (value: T) => R): ShadowFigures<R> {
  return { mean: of(mean), p50: of(p50), p99: of(p99) };
}

function seconds({ low, high }: Interval): Interval {
  return { low: low / MICROS_PER_SECOND, high: high / MICROS_PER_SECOND };
}
