import type { Decision } from "#core/input/decision.ts";
import { type Candidate, type CandidateOutcome, type Setting, runCandidate } from "../candidate/candidate.ts";

/** One request that two profiles sent to different endpoints, with both decisions. */
export interface Divergence {
  readonly request: number;
  readonly base: DecidedRequest;
  readonly other: DecidedRequest;
}

export interface DecidedRequest {
  readonly profile: string;
  readonly decision: Decision;
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  readonly cachedTokens: number;
}

/**
 * Requests on which a candidate and the profile in force part: of each candidate the one that gains and the one that
 * loses most time, up to `countMax` in all. Each of the two is simulated once more to see its decisions.
 */
export function divergences(
  setting: Setting,
  profiles: readonly Candidate[],
  outcomes: readonly CandidateOutcome[],
  countMax: number,
): Divergence[] {
  const [base, ...others] = outcomes;
  if (base === undefined) return [];
  const wanted = others.flatMap((other) => extremes(base, other).map((request) => ({ other, request })));
  const shown = wanted.slice(0, countMax);
  const decisionsOf = (outcome: CandidateOutcome) => {
    const profile = profiles.find(({ name }) => name === outcome.name);
    const requests = new Set(
      shown.filter((one) => one.other === outcome || outcome === base).map((one) => one.request),
    );
    return profile === undefined || requests.size === 0
      ? new Map<number, Decision>()
      : watched(setting, profile, requests);
  };
  const decisions = new Map(outcomes.map((outcome) => [outcome, decisionsOf(outcome)]));
  return shown.flatMap(({ other, request }) => {
    const first = decisions.get(base)?.get(request);
    const second = decisions.get(other)?.get(request);
    if (first === undefined || second === undefined) return [];
    return [{ request, base: decided(base, request, first), other: decided(other, request, second) }];
  });
}

/** The request that is most faster under the other profile, and the one that is most slower, where there is one. */
function extremes(base: CandidateOutcome, other: CandidateOutcome): number[] {
  let fastest = -1;
  let slowest = -1;
  let least = 0;
  let most = 0;
  for (let i = 0; i < base.e2eMicros.length; i++) {
    if (base.endpoint[i] === other.endpoint[i]) continue;
    const difference = other.e2eMicros[i]! - base.e2eMicros[i]!;
    if (difference < least) [fastest, least] = [i, difference];
    if (difference > most) [slowest, most] = [i, difference];
  }
  return [fastest, slowest].filter((request) => request >= 0);
}

function watched(setting: Setting, profile: Candidate, requests: ReadonlySet<number>): Map<number, Decision> {
  const decisions = new Map<number, Decision>();
  runCandidate(setting, profile, {
    watch: (request, decision) => {
      if (requests.has(request)) decisions.set(request, decision);
    },
  });
  return decisions;
}

function decided(outcome: CandidateOutcome, request: number, decision: Decision): DecidedRequest {
  return {
    profile: outcome.name,
    decision,
    ttftMicros: outcome.ttftMicros[request]!,
    e2eMicros: outcome.e2eMicros[request]!,
    cachedTokens: outcome.cachedTokens[request]!,
  };
}
