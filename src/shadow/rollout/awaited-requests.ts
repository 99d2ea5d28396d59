import type { ProfileSpec } from "#core/plugin/spec.ts";
import { isRolloutUnderWay } from "#core/rollout/rollout-book.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { Micros } from "#core/base/units.ts";

/** Requests of a rollout that have ended and wait for what the simulator predicts of them. */
export interface AwaitedRequests {
  readonly rollout: string;
  /** The profile that would have routed them; its spec is left out where each model keeps its own. */
  readonly control: { readonly name: string; readonly spec?: ProfileSpec };
  /** Other gateways have had some of them: whoever has had a request predicts it. */
  readonly isShared: boolean;
  /** Id, and when it ended, oldest first. */
  readonly requests: readonly (readonly [id: string, endAt: Micros])[];
}

/** Requests that are predicted at once; the others wait for the next round. */
const REQUESTS_MAX = 16_384;

/** What waits now, of each rollout that has any. */
export function awaitedRequests(rollouts: Rollouts): AwaitedRequests[] {
  return rollouts.book.flatMap((state) => {
    const { plan } = state;
    const watch = rollouts.watch(plan.name)!;
    const { awaited } = watch.judge;
    if (!isRolloutUnderWay(state) || awaited.size === 0) return [];
    const name = plan.arms[0]!.profile;
    const spec = rollouts.spec(plan.name)?.profiles[name];
    const requests = [...awaited.all].slice(0, REQUESTS_MAX).map(({ id, endAt }) => [id, endAt] as const);
    const control = { name, ...(spec !== undefined && { spec }) };
    return [{ rollout: plan.name, control, isShared: watch.isTogether, requests }];
  });
}
