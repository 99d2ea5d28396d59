import type { Breakdown, Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";

export interface TracedCandidate {
  readonly endpoint: string;
  /** Weighted total; where the policy does not score, the negative of the endpoint's load. */
  readonly score: number;
  readonly effectiveLoad: number;
  readonly kvUtilization: number;
  readonly requestsInFlight: number;
  readonly hitTokens: number;
  /** -1 before the first scrape. */
  readonly loadAgeMicros: number;
}

export interface TracedDecision {
  readonly at: Micros;
  readonly requestId: string;
  /** Undefined for a request that was not placed. */
  readonly endpoint: string | undefined;
  readonly reason: string;
  /** Who computes the prompt, where that is another endpoint. */
  readonly prefillEndpoint?: string;
  /** The best candidates, the best first, as many as were asked for. */
  readonly candidates: readonly TracedCandidate[];
  /** The best score less the chosen one's: what the policy gave up by its own measure, with the signals that it had. */
  readonly scoreRegret: number;
}

/** BLIS's TraceSummary. */
export interface TraceSummary {
  readonly totalDecisions: number;
  readonly routed: number;
  readonly rejected: number;
  readonly uniqueTargets: number;
  readonly targetDistribution: Readonly<Record<string, number>>;
  readonly reasons: Readonly<Record<string, number>>;
  readonly meanScoreRegret: number;
  readonly maxScoreRegret: number;
}

/** Decisions that are kept; further ones are counted in the summary alone. */
const DECISIONS_MAX = 1_000_000;

/** Listens to a simulation's router. */
export class DecisionTrace {
  readonly decisions: TracedDecision[] = [];
  notKept = 0;
  readonly #candidates: number;
  readonly #keeps: boolean;
  readonly #targets = new Map<string, number>();
  readonly #reasons = new Map<string, number>();
  #rejected = 0;
  #regretSum = 0;
  #regretMax = 0;

  /** With `keeps` every decision is written down, with its best `candidates`; the summary is made in any case. */
  constructor(candidates: number, keeps: boolean) {
    this.#candidates = candidates;
    this.#keeps = keeps;
  }

  readonly observe = (_input: Input, decision: Decision | undefined): void => {
    if (decision === undefined) return;
    const ranked = rankedCandidates(decision.breakdown);
    const endpoint = decision.kind === "routed" ? decision.endpoint : undefined;
    const chosen = ranked.find((candidate) => candidate.endpoint === endpoint);
    const scoreRegret = chosen === undefined ? 0 : (ranked[0]?.score ?? 0) - chosen.score;
    this.#reasons.set(decision.reason, (this.#reasons.get(decision.reason) ?? 0) + 1);
    if (endpoint === undefined) this.#rejected++;
    else this.#targets.set(endpoint, (this.#targets.get(endpoint) ?? 0) + 1);
    this.#regretSum += scoreRegret;
    if (scoreRegret > this.#regretMax) this.#regretMax = scoreRegret;
    if (!this.#keeps) return;
    if (this.decisions.length === DECISIONS_MAX) {
      this.notKept++;
      return;
    }
    const { at, requestId, reason } = decision;
    const candidates = ranked.slice(0, this.#candidates);
    const prefillEndpoint = decision.kind === "routed" ? decision.prefill?.endpoint : undefined;
    const prefill = prefillEndpoint === undefined ? undefined : { prefillEndpoint };
    this.decisions.push({ at, requestId, endpoint, reason, ...prefill, candidates, scoreRegret });
  };

  summary(): TraceSummary {
    const routed = [...this.#targets.values()].reduce((sum, count) => sum + count, 0);
    return {
      totalDecisions: routed + this.#rejected,
      routed,
      rejected: this.#rejected,
      uniqueTargets: this.#targets.size,
      targetDistribution: sorted(this.#targets),
      reasons: sorted(this.#reasons),
      meanScoreRegret: routed === 0 ? 0 : this.#regretSum / routed,
      maxScoreRegret: this.#regretMax,
    };
  }
}

/** Candidates that no filter removed, by score and then by id. */
export function rankedCandidates(breakdown: Breakdown): TracedCandidate[] {
  const scores = breakdown.scorers.length > 0;
  const ranked = breakdown.candidates.flatMap((row, i): TracedCandidate[] => {
    if (row.removedBy !== "") return [];
    const { endpoint, effectiveLoad, kvUtilization, requestsInFlight, hitTokens, loadAgeMicros } = row;
    const score = scores ? (breakdown.totals[i] ?? 0) : 0 - effectiveLoad;
    return [{ endpoint, score, effectiveLoad, kvUtilization, requestsInFlight, hitTokens, loadAgeMicros }];
  });
  return ranked.sort((a, b) => b.score - a.score || (a.endpoint < b.endpoint ? -1 : 1));
}

function sorted(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}
