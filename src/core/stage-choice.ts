import { type ColocateReason, colocateReason } from "./prefill/colocate.ts";
import type { Placed, PrefillStage, Routed, DecisionRollout } from "./input/decision.ts";
import type { Endpoint, EndpointId } from "./endpoint/endpoint.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import type { Snapshot } from "./endpoint/snapshot.ts";
import type { MayServe } from "./fleet/eligible.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { Forecast } from "./latency/forecast.ts";
import type { Pending } from "./pending.ts";
import type { PrefillStages } from "./profile/profile-parts.ts";
import type { Choice, Profile } from "./profile/profile.ts";
import type { Random } from "./base/random.ts";
import { leavesPool } from "./rollout-decision.ts";
import type { Micros } from "./base/units.ts";
import type { Noted } from "./request/noted.ts";

/** Who computes the prompt, where that is not who answers. */
export interface PrefillChoice {
  readonly state: EndpointState;
  readonly stage: PrefillStage;
}

/** Who computes the prompt, or why whoever answers does. */
export type PrefillVerdict = PrefillChoice | ColocateReason;

/** What `choice` is where somebody overrules it; an endpoint that may not serve cannot be forced. */
export function forcedChoice(choice: Choice, { ids, ineligible }: Fleet, forced: EndpointId | undefined): Choice {
  const index = forced === undefined ? -1 : ids.indexOf(forced);
  if (index < 0 || index === choice.index || ineligible[index] !== 0) return choice;
  return { ...choice, index, reason: "forced" };
}

/**
 * Who computes the prompt of a request that `answers` answers, or why that one does; undefined where the profile has no
 * stage for it, and for a second endpoint beside one that has the request, which does all itself. The fleet's marks are
 * of this stage afterwards.
 */
export function choosePrefill(
  at: Micros,
  { stages }: Profile,
  fleet: Fleet,
  pending: Pending,
  answers: EndpointState,
  random: Random,
): PrefillVerdict | undefined {
  if (stages === undefined || pending.state !== undefined) return undefined;
  const { spec, roles, prefill } = stages;
  const { request, tried, transferFailed, asked, membership } = pending;
  const why = colocateReason(spec, request, answers.hitTokens, { continued: request !== asked, transferFailed });
  if (why !== undefined) return why;
  fleet.markForPrefill(at, request, tried, answers, mayPrefill(roles), mayPair(roles, answers.endpoint));
  leavesPool(fleet, membership);
  const { index, reason, breakdown } = prefill.choose(request, fleet.states, fleet.ids, fleet.ineligible, random);
  const state = fleet.states[index];
  if (state === undefined) return "no-prefill-endpoint";
  const { heldTokens } = state;
  const held = heldTokens === state.hitTokens ? undefined : { heldTokens };
  const noted = prefill.noted(state);
  const what = prefillStage(stages, state, { reason, ...held, breakdown });
  return { state, stage: noted === undefined ? what : { ...what, noted } };
}

/** What a decision states of who computes the prompt. */
export function prefillStage(
  { spec }: PrefillStages,
  { id: endpoint, hitTokens, prefixSource }: Pick<Snapshot, "id" | "hitTokens" | "prefixSource">,
  { reason, breakdown, ...held }: Pick<PrefillStage, "reason" | "heldTokens" | "breakdown">,
): PrefillStage {
  return { endpoint, handoff: spec.handoff, reason, hitTokens, ...held, prefixSource, breakdown };
}

// Not within choosePrefill: what its functions capture would be put on the heap by each call that returns at once, too.
function mayPrefill(roles: PrefillStages["roles"]): MayServe {
  return (endpoint) => roles.may("prefill", endpoint);
}

function mayPair(roles: PrefillStages["roles"], answers: Endpoint): MayServe {
  return (endpoint) => roles.mayPair(answers, endpoint);
}

/** What a decision states of it; a forecast is of one endpoint that does both. */
function decisionStages(
  choice: PrefillVerdict | undefined,
  forecast: Forecast | undefined,
): Pick<Routed, "prefill" | "colocated" | "forecast"> {
  if (typeof choice === "object") return { prefill: choice.stage };
  return { ...(forecast !== undefined && { forecast }), ...(choice !== undefined && { colocated: choice }) };
}

/**
 * Endpoints that a retry would leave out if the stage under way failed now: while the prompt is computed elsewhere, who
 * answers has failed nothing.
 */
export function triedIfItFails({ tried, prefill, state }: Pending): readonly EndpointId[] {
  if (prefill === undefined) return tried;
  return [...tried.filter((id) => id !== state?.id), prefill.state.id];
}

/** The prompt is computed before the request goes to the endpoint that answers. */
export function goesFirst({ handoff }: PrefillStage): boolean {
  return handoff === "prefill-first";
}

/** Where a request waits for a byte: at the endpoint that computes its prompt, while it was sent nowhere else. */
export function firstStop(decision: Placed & { readonly kind: "routed" }): EndpointId {
  const { prefill, endpoint } = decision;
  return prefill !== undefined && goesFirst(prefill) ? prefill.endpoint : endpoint;
}

/** What few decisions have beside what all of them have. */
interface RoutedParts {
  readonly rollout: DecisionRollout | undefined;
  readonly heldTokens: number;
  readonly prefill: PrefillVerdict | undefined;
  readonly forecast: Forecast | undefined;
  readonly noted: Noted | undefined;
  readonly priority: number | undefined;
}

/** A decision with those parts that it has. Most have none: an object that is put together of others takes 0.5 KB more. */
export function routedDecision(routed: Routed, parts: RoutedParts): Routed {
  const { rollout, heldTokens, prefill, forecast, noted, priority } = parts;
  return {
    ...routed,
    ...(rollout !== undefined && { rollout }),
    ...(heldTokens !== routed.hitTokens && { heldTokens }),
    ...decisionStages(prefill, forecast),
    ...(noted !== undefined && { noted }),
    ...(priority !== undefined && { priority }),
  };
}
