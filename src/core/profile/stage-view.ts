import type { Decision } from "../input/decision.ts";
import type { RouteRequest } from "../request/request.ts";

/** Name of a profile's stage for prompts, as its plugins see it in decisions. */
export function prefillStageName(profile: string): string {
  return `${profile}/prefill`;
}

/**
 * A decision as the plugins see it that choose who answers: where another endpoint computes the prompt, all of it
 * comes.
 */
export function decodeView(decision: Decision | undefined, request: RouteRequest | undefined): Decision | undefined {
  if (decision?.kind !== "routed" || decision.prefill === undefined || request === undefined) return decision;
  return { ...decision, hitTokens: Math.max(0, request.promptTokens - 1) };
}

/** The same as the plugins see it that choose who computes the prompt. */
export function prefillView(decision: Decision | undefined): Decision | undefined {
  if (decision?.kind !== "routed" || decision.prefill === undefined) return decision;
  const { noted: _ofWhoAnswers, ...both } = decision;
  return { ...both, ...decision.prefill, profile: prefillStageName(decision.profile) };
}
