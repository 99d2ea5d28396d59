import { type BookInput, isRolloutUnderWay, rolloutOf } from "#core/rollout/rollout-book.ts";
import type { RolloutState, RolloutStep } from "#core/rollout/rollout-state.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { Micros } from "#core/base/units.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { RolloutMemory } from "./rollout-memory.ts";
import type { Policy } from "../policy/policy.ts";
import type { SavedRollout } from "./saved-rollout.ts";
import { isControlled } from "./standing-promotions.ts";

/** What rollouts know of the policy that is in force, and do to it. */
export interface PolicyInForce {
  /** In force. */
  readonly policy: () => Policy;
  /** Makes an arm's profile the policy's. Returns what is wrong, and then nothing has changed. */
  readonly promote: (state: RolloutState, arm: string, by: string) => readonly string[];
  /**
   * One was rolled back, or forgotten: policies that it stood in the way of may be asked for again. After a promotion they
   * are not, since a file from before it would take the promotion back.
   */
  readonly takenBack?: () => void;
}

/** What following another replica needs of the keeper. */
export interface AdoptingReplica extends PolicyInForce {
  readonly memory: RolloutMemory;
  readonly report: (event: FaultEvent) => void;
  readonly rollouts: Rollouts;
  readonly at: Micros;
  /** What is wrong with an input; the router has taken it where nothing is. */
  readonly give: (input: BookInput) => readonly string[];
  readonly take: (step: RolloutStep) => readonly string[];
}

/** A step that another replica made; a promotion makes this one's policy too. False where it is none of this one's. */
export function adoptRollout(saved: SavedRollout, follower: AdoptingReplica): boolean {
  const { memory, policy, promote, report, takenBack, rollouts, at, give } = follower;
  const { state, rules, profiles } = saved;
  const { name } = state.plan;
  const known = rollouts.watch(name)?.state.phase;
  const own = memory.moved(state);
  if (known === undefined && (memory.hasEnded(name) || !isOfUse(own, saved, policy(), at))) return false;
  giveWay(state, follower);
  memory.adopt(saved);
  if (known === state.phase && saved.overtaken) return true;
  const problems = [...give({ kind: "rollout-restored", at, state: own, rules, profiles })];
  // In the same run of the event loop, between two decisions; the rollout's profiles are known now.
  if (problems.length === 0 && state.phase === "promoted" && known !== "promoted" && !saved.overtaken) {
    problems.push(...promote(state, state.promoted, "another replica").map((one) => `the policy stays here: ${one}`));
  }
  const detail = `${name}: ${problems.length > 0 ? problems.join("; ") : `${state.phase} elsewhere: ${state.reason}`}`;
  const [kind, done] =
    problems.length > 0 ? (["rollout-refused", "left out"] as const) : (["rollout-step", "followed"] as const);
  report({ kind, detail, done });
  if (state.phase === "rolled-back") takenBack?.();
  return true;
}

/**
 * Whether one that is over matters to a gateway that did not run it: a promotion that stands is the fleet's policy,
 * unless this gateway was given another one since, and while one cools down no other one of its model begins.
 */
function isOfUse(state: RolloutState, { overtaken }: SavedRollout, policy: Policy, at: Micros): boolean {
  const { phase, plan, at: since } = state;
  if (phase === "promoted") return overtaken !== true && isControlled(state, policy);
  return phase !== "rolled-back" || at < since + plan.cooldownMicros;
}

/** Where two replicas began rollouts of one model at the same time, the one that the store had first goes on. */
function giveWay(state: RolloutState, { rollouts, at, take }: AdoptingReplica): void {
  const { name, model } = state.plan;
  const others = rollouts.book.filter(({ plan }) => plan.name !== name);
  const rival = isRolloutUnderWay(state) ? rolloutOf(others, model) : undefined;
  if (rival === undefined) return;
  const step = { kind: "rollout-step", at, rollout: rival.plan.name, step: "rollback", arm: "" } as const;
  take({ ...step, reason: `${name} was started by another replica first`, by: "another replica" });
}
