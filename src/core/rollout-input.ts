import type { ProfileSet } from "./profile/profile-set.ts";
import type { RolloutInput } from "./rollout/rollout-input.ts";
import type { Rollouts } from "./rollouts.ts";
import type { SessionInference } from "./session/session-inference.ts";

/** Profiles that a rollout under way needs stay beside those of the policy, and no longer. */
export function applyRolloutInput(
  rollouts: Rollouts,
  profiles: ProfileSet,
  sessions: SessionInference,
  input: RolloutInput,
): void {
  if (input.kind === "rollout-look") return rollouts.look(input);
  if (input.kind === "rollout-predicted") return rollouts.predicted(input);
  if (input.kind === "rollout-shared") return rollouts.shared(input);
  if (input.kind === "sessions-restored") return sessions.restore(input.keys);
  rollouts.change(input);
  profiles.keep(rollouts.profiles);
}
