import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { Policy } from "../policy/policy.ts";

/**
 * Promotions that decide, and those that a later policy has overtaken: a gateway that starts then must not make them
 * again.
 */
export class StandingPromotions {
  /** Names of rollouts whose promoted profile decided here at some look. */
  readonly #held = new Set<string>();

  /** Names of those that held at the look before and hold no longer. */
  overtaken(book: readonly RolloutState[], policy: Policy): string[] {
    const promoted = book.filter(({ phase }) => phase === "promoted");
    for (const state of promoted) if (holds(state, policy)) this.#held.add(state.plan.name);
    const names = new Set(promoted.filter((state) => !holds(state, policy)).map(({ plan }) => plan.name));
    return [...this.#held].filter((name) => {
      if (!book.some(({ plan }) => plan.name === name)) this.#held.delete(name);
      return names.has(name) && this.#held.delete(name);
    });
  }
}

/** Whether a policy is still the one that a rollout was made beside: a promotion then means what it meant there. */
export function isControlled({ plan: { model, arms } }: RolloutState, policy: Policy): boolean {
  const { profile } = arms[0]!;
  return profile === "" || profile === profileFor(policy, model);
}

function holds({ plan: { model, arms }, promoted }: RolloutState, policy: Policy): boolean {
  const profile = arms.find(({ name }) => name === promoted)?.profile ?? "";
  return profile === "" || profile === profileFor(policy, model);
}

/** Name of the profile that a model's requests are routed by; of the default one where none is named. */
export function profileFor({ config, profiles, profile }: Policy, model: string): string {
  const key = model === "" ? undefined : config.routing.models[model];
  return (key === undefined ? undefined : profiles[key]?.name) ?? profile.name;
}
