import type { DecisionRollout, Routed } from "./input/decision.ts";
import type { Forecast } from "./latency/forecast.ts";
import type { Noted } from "./request/noted.ts";
import { decisionStages, type PrefillChoice } from "./stage-choice.ts";
import type { ColocateReason } from "./disaggregation/colocate.ts";

/** What few decisions have beside what all of them have. */
interface RoutedParts {
  readonly rollout: DecisionRollout | undefined;
  readonly heldTokens: number;
  readonly prefill: PrefillChoice | ColocateReason | undefined;
  readonly forecast: Forecast | undefined;
  readonly noted: Noted | undefined;
  readonly priority: number | undefined;
}

/**
 * A decision with those parts that it has. Most have none, and are `routed` itself: an object that is put together of
 * others takes 0.5 KB more of the heap.
 */
export function routedDecision(routed: Routed, parts: RoutedParts): Routed {
  const { rollout, heldTokens, prefill, forecast, noted, priority } = parts;
  const isPlain = rollout === undefined && prefill === undefined && forecast === undefined && priority === undefined;
  if (isPlain && noted === undefined && heldTokens === routed.hitTokens) return routed;
  return {
    ...routed,
    ...(rollout !== undefined && { rollout }),
    ...(heldTokens !== routed.hitTokens && { heldTokens }),
    ...decisionStages(prefill, forecast),
    ...(noted !== undefined && { noted }),
    ...(priority !== undefined && { priority }),
  };
}
