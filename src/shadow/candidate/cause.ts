import type { CandidateOutcome } from "./candidate.ts";

export const CHANGES = ["less", "same", "more"] as const;
/** Against the same request under the profile in force. */
export type Change = (typeof CHANGES)[number];

/** Requests whose decision changed alike, and the outcome. */
export interface Cause {
  /** False for requests that went where they would have gone anyway. */
  readonly moved: boolean;
  /** Prompt tokens that the engine had in its cache: less is a lost prefix. */
  readonly cached: Change;
  /** Requests in flight at the chosen endpoint: more is a hotter one. */
  readonly inFlight: Change;
  readonly requests: number;
  readonly ttftChangeMicros: number;
  readonly e2eChangeMicros: number;
  readonly cachedTokensChange: number;
  readonly inFlightChange: number;
  /** Part of the mean E2E difference over all requests that these make up: all causes add up to it. */
  readonly shareMicros: number;
}

/**
 * Why a candidate differs: requests that both runs answered, grouped by what became of their endpoint, their prefix and
 * their queue. The largest part of the mean difference first, faster or slower.
 */
export function causesOf(outcome: CandidateOutcome, base: CandidateOutcome): Cause[] {
  const sums = Array.from({ length: 2 * CHANGES.length ** 2 }, () => new Float64Array(5));
  let pairs = 0;
  for (let i = 0; i < outcome.e2eMicros.length; i++) {
    const e2e = outcome.e2eMicros[i]! - base.e2eMicros[i]!;
    if (Number.isNaN(e2e)) continue;
    pairs++;
    const moved = outcome.endpoint[i] === base.endpoint[i] ? 0 : 1;
    const cached = outcome.cachedTokens[i]! - base.cachedTokens[i]!;
    const inFlight = outcome.inFlight[i]! - base.inFlight[i]!;
    const sum = sums[(moved * CHANGES.length + changeOf(cached)) * CHANGES.length + changeOf(inFlight)]!;
    sum[0]!++;
    sum[1]! += outcome.ttftMicros[i]! - base.ttftMicros[i]!;
    sum[2]! += e2e;
    sum[3]! += cached;
    sum[4]! += inFlight;
  }
  const causes = sums.flatMap(([requests = 0, ttft = 0, e2e = 0, cached = 0, inFlight = 0], group): Cause[] => {
    if (requests === 0) return [];
    return [
      {
        moved: group >= CHANGES.length ** 2,
        cached: CHANGES[Math.floor(group / CHANGES.length) % CHANGES.length]!,
        inFlight: CHANGES[group % CHANGES.length]!,
        requests,
        ttftChangeMicros: ttft / requests,
        e2eChangeMicros: e2e / requests,
        cachedTokensChange: cached / requests,
        inFlightChange: inFlight / requests,
        shareMicros: e2e / pairs,
      },
    ];
  });
  return causes.sort((a, b) => Math.abs(b.shareMicros) - Math.abs(a.shareMicros));
}

/** A position in CHANGES. */
function changeOf(difference: number): number {
  return difference < 0 ? 0 : difference > 0 ? 2 : 1;
}
