import type { RefusalReason } from "../admission/held.ts";
import type { WaitReason } from "../admission/waiting-request.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { PrefixSource } from "../endpoint/knowledge.ts";
import type { Noted } from "../request/noted.ts";
import type { NobodyReason } from "../fleet/fleet-standing.ts";
import type { Freshness } from "../endpoint/snapshot.ts";
import type { Forecast } from "../latency/forecast.ts";
import type { PrefillTerms } from "../plugin/spec.ts";
import type { Micros } from "../base/units.ts";

/** A queued request is decided on again when its turn comes. */
export type Decision = Placed | Queued;

/** Of a request that does not wait. */
export type Placed = Routed | Rejected;

/** Sequence of a decision that another router made. */
export const PEER_SEQUENCE = -1;

/** The rollout that a request is part of. */
export interface DecisionRollout {
  readonly name: string;
  readonly arm: string;
  /** Number of the window that the request arrived in; -1 while the rollout is paused. */
  readonly window: number;
  /** Nobody in the arm's pool could serve it, so it went elsewhere and is not counted. */
  readonly outsidePool?: true;
  /** What the arms that decide too would have done; "" for nobody. */
  readonly alternatives?: readonly ArmAlternative[];
}

export interface ArmAlternative {
  /** Place in the plan's arms. */
  readonly arm: number;
  readonly endpoint: EndpointId;
  /** Prompt tokens that this endpoint is believed to hold. */
  readonly hitTokens: number;
}

export interface Routed {
  readonly kind: "routed";
  readonly at: Micros;
  /** Counts decisions from 0; names the random stream. PEER_SEQUENCE where a peer decided. */
  readonly sequence: number;
  readonly requestId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  readonly profile: string;
  /** Number of the policy in force. */
  readonly policyVersion: number;
  /** Absent where no rollout is about it. */
  readonly rollout?: DecisionRollout;
  readonly endpoint: EndpointId;
  /**
   * Why, in one word: "only" (one candidate), the name of the scorer whose weighted lead over the runner-up was the
   * largest, "tie" (the tie rule chose), or the picker's own name where it does not follow the totals;
   * "forced" where somebody overruled the policy.
   */
  readonly reason: string;
  /** Prompt tokens that the chosen endpoint is believed to hold; those in its host's memory count for less. */
  readonly hitTokens: number;
  /** All of them, wherever they lie; absent where none is in the host's memory. */
  readonly heldTokens?: number;
  /** Where that belief comes from. */
  readonly prefixSource: PrefixSource;
  /** Some candidate's signal was missing or too old, and the router's own ledger stood in for it. */
  readonly usedLedger: boolean;
  /**
   * What its times were expected to be, by a scorer that predicts them; absent without one, and where two share the
   * work.
   */
  readonly forecast?: Forecast;
  /** Another endpoint computes the prompt, and `endpoint` fetches its blocks and answers. Absent: `endpoint` does both. */
  readonly prefill?: RoutedPrefill;
  /** Who has it before it goes to `endpoint`; absent where it goes there at once, and in a trace. */
  readonly sentFirst?: EndpointId;
  /**
   * Why `endpoint` does both although the profile divides requests; absent where it has none, or `prefill` is
   * there.
   */
  readonly colocated?: ColocateReason;
  /** What plugins learn of it beside; absent where that is nothing, and in a trace. */
  readonly noted?: Noted;
  /** vLLM's priority by the policy's rule, which takes the place of the client's; absent where there is none. */
  readonly priority?: number;
  readonly breakdown: Breakdown;
}

/** Where a prompt is computed whose answer is made elsewhere. `reason`, `hitTokens` and the rest are as of Routed. */
export interface RoutedPrefill extends PrefillTerms {
  readonly endpoint: EndpointId;
  readonly reason: string;
  readonly hitTokens: number;
  readonly heldTokens?: number;
  readonly prefixSource: PrefixSource;
  /** As of Routed. */
  readonly noted?: Noted;
  readonly breakdown: Breakdown;
}

/**
 * Why one endpoint does both, computes the prompt and answers:
 * - undivided: such requests cannot be shared, or its engine has to compute the whole prompt itself
 * - several-sequences: it asks for more than one answer
 * - short: the prompt is shorter than what is shared
 * - cached: too little of the prompt is missing from the cache of the endpoint that answers
 * - continued: it goes on behind a part of its answer
 * - transfer-failed: its blocks were lost between two endpoints before
 * - no-prefill-endpoint: none may compute its prompt
 */
export const COLOCATE_REASONS = [
  "undivided",
  "several-sequences",
  "short",
  "cached",
  "continued",
  "transfer-failed",
  "no-prefill-endpoint",
] as const;
export type ColocateReason = (typeof COLOCATE_REASONS)[number];

export interface Rejected {
  readonly kind: "rejected";
  readonly at: Micros;
  readonly sequence: number;
  readonly requestId: string;
  readonly attempt: number;
  readonly profile: string;
  /** Number of the policy in force. */
  readonly policyVersion: number;
  /** Absent where no rollout is about it. */
  readonly rollout?: DecisionRollout;
  readonly reason: RejectReason;
  /** Name of the limit that refused it; absent where none did. */
  readonly limit?: string;
  /** After which asking again may help; absent where that is not known. */
  readonly retryMicros?: Micros;
  readonly breakdown: Breakdown;
}

/** A request that waits: for room, for an endpoint, or for a limit to let it in. */
export interface Queued {
  readonly kind: "queued";
  readonly at: Micros;
  readonly sequence: number;
  readonly requestId: string;
  readonly attempt: number;
  readonly profile: string;
  /** Number of the policy in force. */
  readonly policyVersion: number;
  readonly reason: WaitReason;
  /** Name of the limit that delays it; absent where none does. */
  readonly limit?: string;
  /** Absent where no rollout is about it. */
  readonly rollout?: DecisionRollout;
  readonly breakdown: Breakdown;
}

/**
 * no-endpoint: none is known or none is left to try. unknown-model: none serves it. asleep: those that could all sleep.
 * excluded: the profile's filters take none for what they are. saturated: filters refused all, some for how busy they
 * are. Others: admission refused it.
 */
export type RejectReason = NobodyReason | "excluded" | "saturated" | RefusalReason;

/** Everything that led to a decision, a row per endpoint in order of id. */
export interface Breakdown {
  readonly candidates: readonly CandidateRow[];
  /** Scorers in profile order with their normalised weights. */
  readonly scorers: readonly { readonly name: string; readonly weight: number }[];
  /**
   * Values after clamping to [0, 1]: `values[s * candidates.length + i]`; -1 where the scorer abstained, NaN where a
   * filter removed the candidate.
   */
  readonly values: Float64Array;
  /** Weighted sums; NaN where a filter removed the candidate. */
  readonly totals: Float64Array;
  /** Scorer values that were out of [0, 1] and were clamped. */
  readonly clamped: number;
}

export interface CandidateRow {
  readonly endpoint: EndpointId;
  /** Filter that removed it, "" if none did. */
  readonly removedBy: string;
  readonly freshness: Freshness;
  /** Age of the scraped signals; -1 when there never was a scrape. */
  readonly loadAgeMicros: number;
  readonly effectiveLoad: number;
  readonly kvUtilization: number;
  readonly requestsInFlight: number;
  readonly prefillTokensQueued: number;
  readonly hitTokens: number;
  readonly prefixSource: PrefixSource;
}
