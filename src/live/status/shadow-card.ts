import type { ShadowCandidateCard, ShadowCard, ShadowPrediction } from "#page/status/overview.ts";
import type { ShadowCandidate, ShadowStatus } from "../metrics/shadow-status.ts";

/** What of the shadow's state the status page shows. */
export function shadowCard({ state, detail, parity, calibration, evaluation }: ShadowStatus): ShadowCard {
  return {
    state,
    detail,
    decisions: parity.decisions,
    differences: parity.differences,
    engine: calibration.source,
    evaluation:
      evaluation === undefined
        ? null
        : {
            inForce: evaluation.inForce,
            requests: evaluation.requests,
            replicas: evaluation.replicas,
            withoutIntervals: evaluation.withoutIntervals,
            measuredSeconds: evaluation.measuredSeconds,
            candidates: evaluation.candidates.map(candidateCard),
          },
  };
}

function candidateCard({ name, hitRatio, ...candidate }: ShadowCandidate): ShadowCandidateCard {
  const predicted = Object.entries(candidate.predictedSeconds).map(([metric, point]): [string, ShadowPrediction] => {
    const interval = candidate.intervalSeconds[metric]?.mean;
    const difference = candidate.differenceSeconds[metric];
    return [
      metric,
      {
        mean: interval?.expected ?? point,
        ...(interval && { low: interval.low, high: interval.high }),
        ...(difference && { difference: difference.mean, exceedsNoise: difference.exceedsNoise }),
      },
    ];
  });
  return { name, hitRatio, predicted: Object.fromEntries(predicted) };
}
