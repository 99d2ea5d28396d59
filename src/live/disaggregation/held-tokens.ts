import type { Routed } from "#core/input/decision.ts";

/** Prompt tokens that are believed to be held where the prompt is computed; 0 where nothing was decided. */
export function heldTokens(routed: Routed | undefined): number {
  const stage = routed?.prefill ?? routed;
  return stage?.heldTokens ?? stage?.hitTokens ?? 0;
}
