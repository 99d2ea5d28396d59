import { isRolloutUnderWay } from "#core/rollout/rollout-book.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { Policy } from "../policy/policy.ts";
import { profileFor } from "./standing-promotions.ts";

/** A rollout that is planned or under way, and the keys that a policy changes of what it compares or is made beside. */
interface RolloutInTheWay {
  readonly name: string;
  readonly paths: readonly string[];
}

/** Those of which a policy changes something that is in force. */
export function inTheWay(rollouts: Rollouts, asked: Policy, inForce: Policy): RolloutInTheWay[] {
  const open = rollouts.book.filter((state) => isRolloutUnderWay(state) || state.phase === "planned");
  return open.flatMap(({ plan: { name, model } }) => {
    const compared = Object.entries(rollouts.spec(name)!.profiles).flatMap(([profile, spec]) => {
      const other = Object.values(asked.profiles).find((one) => one.name === profile);
      return other === undefined || JSON.stringify(other.spec) === JSON.stringify(spec) ? [] : [`profiles.${profile}`];
    });
    const isOther = profileFor(asked, model) !== profileFor(inForce, model);
    const routed = model === "" ? "routing.profile" : `routing.models.${model}`;
    const paths = isOther ? [routed, ...compared] : compared;
    return paths.length === 0 ? [] : [{ name, paths }];
  });
}

/** Why the policy is refused, a line for each key. */
export function objectionsOf({ name, paths }: RolloutInTheWay): string[] {
  const what = `expected it as it is while rollout ${name} compares it`;
  return paths.map((path) => `${path}: ${what}; end that one first, or force the change, which takes it back`);
}
