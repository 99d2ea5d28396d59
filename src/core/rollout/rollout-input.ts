import type { ProfileSpec } from "../plugin/spec.ts";
import type { Micros } from "../base/units.ts";
import type { SavedJudge } from "./judge/judge.ts";
import type { JudgeEntry } from "./judge/judge-entry.ts";
import type { JudgeRules } from "./judge/judge-rules.ts";
import type { Agreement } from "./agreement.ts";
import type { RolloutPlan } from "./plan/rollout-plan.ts";
import type { RolloutState, RolloutStep } from "./rollout-state.ts";

/** What a rollout is made of, whole: who is compared how, what by, and the policies themselves. */
export interface RolloutSpec {
  readonly plan: RolloutPlan;
  readonly rules: JudgeRules;
  /** Every profile that an arm names, so that no later change of the policy takes it away. */
  readonly profiles: Readonly<Record<string, ProfileSpec>>;
}

/** A new rollout is there to be started. */
export interface RolloutPlanned extends RolloutSpec {
  readonly kind: "rollout-planned";
  readonly at: Micros;
}

/** An ended rollout is taken away. */
export interface RolloutRemoved {
  readonly kind: "rollout-removed";
  readonly at: Micros;
  readonly rollout: string;
}

/**
 * A rollout as it stood elsewhere, with times of this router's clock, which may lie below 0: in this gateway before it
 * started again, or in another replica. It takes the place of one of its name; without `judge` that one's judge stays.
 */
export interface RolloutRestored extends Omit<RolloutSpec, "plan"> {
  readonly kind: "rollout-restored";
  readonly at: Micros;
  readonly state: RolloutState;
  readonly judge?: SavedJudge;
  /** Of the arms that decide too, by arm. */
  readonly agreements?: readonly Agreement[];
}

/**
 * The judge of every rollout that runs looks at what was measured until now; what it proposes is for the host to
 * accept.
 */
export interface RolloutLook {
  readonly kind: "rollout-look";
  readonly at: Micros;
}

/** TTFT, TPOT and E2E that are predicted of a request, in microseconds; null where it has none. */
export type RequestPrediction = readonly [id: string, ttft: Micros | null, tpot: Micros | null, e2e: Micros | null];

/**
 * What the simulator beside the gateway makes of requests that have ended, had the control routed everything: what differs
 * between windows and sessions whatever arm they were on.
 */
export interface RolloutPredicted {
  readonly kind: "rollout-predicted";
  readonly at: Micros;
  readonly rollout: string;
  readonly requests: readonly RequestPrediction[];
}

/** A request of a replica that has not ended: arm, stretch, slice, when it arrived, and the time to its first token. */
export type SharedRequest = readonly [arm: number, stretch: Micros, slice: number, at: Micros, ttft: Micros | null];

/**
 * What replicas of a gateway give the judge of a rollout that all of them run, in the order that all of them have: each
 * has the same judge. While they are together what a watch itself sees comes back this way alone.
 */
export interface RolloutShared {
  readonly kind: "rollout-shared";
  readonly at: Micros;
  readonly rollout: string;
  /** False: from now on it judges what it sees itself. */
  readonly together: boolean;
  /** Takes the place of the judge, before the entries; on this router's clock, as they are. */
  readonly judge?: SavedJudge;
  readonly entries: readonly JudgeEntry[];
  /** Who sent them, and what has not ended there. */
  readonly replica: string;
  readonly open: readonly SharedRequest[];
}

/** Conversations as they were inferred before a restart: keys of prompts' ends and of the conversation's, in turn. */
export interface SessionsRestored {
  readonly kind: "sessions-restored";
  readonly at: Micros;
  readonly keys: readonly number[];
}

/** What moves a rollout. All of it is in the trace, so that a rollout replays to the same decisions. */
export type RolloutInput =
  | RolloutPlanned
  | RolloutStep
  | RolloutRemoved
  | RolloutRestored
  | RolloutLook
  | RolloutPredicted
  | RolloutShared
  | SessionsRestored;
