import type { ArmAlternative, DecisionRollout } from "./input/decision.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { Pending } from "./pending.ts";
import type { Profile } from "./profile/profile.ts";
import type { ProfileSet } from "./profile/profile-set.ts";
import type { Random } from "./base/random.ts";
import type { RolloutMembership } from "./rollouts.ts";
import type { Micros } from "./base/units.ts";

/** Only endpoints of the arm's pool may serve it; true where none of them can, and others may. */
export function leavesPool(fleet: Fleet, { assignment: { pool } }: RolloutMembership): boolean {
  return pool !== undefined && !fleet.restrict(pool.label, pool.value);
}

/**
 * What a decision states of its rollout. Arms that decide too see the same fleet and draw the same numbers; where roles of
 * endpoints count for one profile and not for the other, each sees those that may answer by its own.
 */
export function decisionRollout(
  at: Micros,
  { request, tried }: Pick<Pending, "request" | "tried">,
  membership: RolloutMembership,
  outsidePool: boolean,
  decided: Profile,
  fleet: Fleet,
  profiles: ProfileSet,
  stream: () => Random,
): DecisionRollout {
  const { rollout: name, arm, assignment, shadows } = membership;
  let marked = decided;
  const alternatives = shadows.map(({ arm: other, profile: asked }): ArmAlternative => {
    const profile = profiles.choose(asked === "" ? request.profile : asked);
    if (profile.division !== marked.division) {
      fleet.markIneligible(at, request, tried, profile.mayAnswer);
      leavesPool(fleet, membership);
      marked = profile;
    }
    const { index } = profile.choose(request, fleet.states, fleet.ids, fleet.ineligible, stream());
    const state = fleet.states[index];
    return { arm: other, endpoint: state?.id ?? "", hitTokens: state?.hitTokens ?? 0 };
  });
  return {
    name,
    arm,
    window: assignment.window,
    ...(outsidePool && { outsidePool }),
    ...(alternatives.length > 0 && { alternatives }),
  };
}
