import { type BookInput, isUnderWay, rolloutOf } from "#core/rollout/rollout-book.ts";
import type { RolloutState, RolloutStep } from "#core/rollout/rollout-state.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { Micros } from "#core/units.ts";
import type { RolloutKeeperOptions } from "./rollout-keeper.ts";
import type { SavedRollout } from "./saved-rollout.ts";

/** What following another replica needs of the keeper. */
export interface Follower extends Pick<RolloutKeeperOptions, "memory" | "promote" | "report" | "takenBack"> {
  readonly rollouts: Rollouts;
  readonly at: Micros;
  /** What is wrong with an input; the router has taken it where nothing is. */
  readonly give: (input: BookInput) => readonly string[];
  readonly take: (step: RolloutStep) => readonly string[];
}

/** A step that another replica made; a promotion makes this one's policy too. False where it is none of this one's. */
export function adoptRollout(saved: SavedRollout, follower: Follower): boolean {
  const { memory, promote, report, takenBack, rollouts, at, give } = follower;
  const { state, rules, profiles } = saved;
  const { name } = state.plan;
  const known = rollouts.watch(name)?.state.phase;
  const isOver = state.phase === "promoted" || state.phase === "rolled-back";
  if (known === undefined && (isOver || memory.hasEnded(name))) return false;
  giveWay(state, follower);
  const restored = { kind: "rollout-restored", at, state: memory.adopt(saved), rules, profiles } as const;
  if (state.phase === "promoted" && known !== "promoted") {
    const problems = promote(state, state.promoted, "another replica");
    if (problems.length > 0) {
      const detail = `${name}, promoted by another replica: ${problems.join("; ")}`;
      report({ kind: "rollout-refused", detail, done: "the policy stays here" });
    }
  }
  const problems = give(restored);
  const detail = `${name}: ${problems.length > 0 ? problems.join("; ") : `${state.phase} elsewhere: ${state.reason}`}`;
  const [kind, done] =
    problems.length > 0 ? (["rollout-refused", "left out"] as const) : (["rollout-step", "followed"] as const);
  report({ kind, detail, done });
  if (state.phase === "rolled-back") takenBack?.();
  return true;
}

/** Where two replicas began rollouts of one model at the same time, the one that the store had first goes on. */
function giveWay(state: RolloutState, { rollouts, at, take }: Follower): void {
  const { name, model } = state.plan;
  const others = rollouts.book.filter(({ plan }) => plan.name !== name);
  const rival = isUnderWay(state) ? rolloutOf(others, model) : undefined;
  if (rival === undefined) return;
  const step = { kind: "rollout-step", at, rollout: rival.plan.name, step: "rollback", arm: "" } as const;
  take({ ...step, reason: `${name} was started by another replica first`, by: "another replica" });
}
