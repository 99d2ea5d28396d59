import type { Random } from "../base/random.ts";
import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Breakdown, ColocateReason, RoutedPrefill } from "../input/decision.ts";
import type { DisaggregationSpec, RolesSpec } from "../plugin/spec.ts";
import type { Noted } from "../request/noted.ts";
import type { RouteRequest } from "../request/request.ts";

/** Which phase of a request an endpoint is chosen for. */
export type RequestPhase = "prefill" | "decode";

/** Who computes the prompt, where that is not who answers. */
export interface PrefillChoice<S> {
  readonly state: S;
  readonly prefill: RoutedPrefill;
  /** Its prompt is computed before the request goes to the endpoint that answers. */
  readonly isFirst: boolean;
}

/** A request whose endpoint to answer was chosen. */
export interface AnsweredRequest {
  readonly request: RouteRequest;
  readonly answers: Snapshot;
  readonly past: RequestPast;
  readonly random: Random;
}

/** The endpoints of its decision. */
export interface PrefillCandidates<S> {
  readonly states: readonly S[];
  readonly ids: readonly EndpointId[];
  /** Why each of them may not compute its prompt, as an index into ELIGIBILITY; asked where somebody is to. */
  readonly marks: () => Uint8Array;
}

/** What chooses among endpoints, by a profile. */
export interface Chooser {
  choose(
    request: RouteRequest,
    states: readonly Snapshot[],
    ids: readonly EndpointId[],
    ineligible: Uint8Array,
    random: Random,
  ): { readonly index: number; readonly reason: string; readonly breakdown: Breakdown };
  noted(chosen: Snapshot): Noted | undefined;
}

/** How a profile shares requests between an endpoint that computes the prompt and one that answers. */
export class PromptDivision<Profile extends Chooser = Chooser> {
  readonly spec: DisaggregationSpec;
  readonly roles: Roles;
  /** Chooses who computes the prompt. */
  readonly prefill: Profile;

  constructor(spec: DisaggregationSpec, prefill: Profile) {
    this.spec = spec;
    this.roles = new Roles(spec.roles);
    this.prefill = prefill;
  }

  /** Who computes the prompt, or why who answers does. */
  choose<S extends Snapshot & { readonly heldTokens?: number }>(
    { request, answers, past, random }: AnsweredRequest,
    { states, ids, marks }: PrefillCandidates<S>,
  ): PrefillChoice<S> | ColocateReason {
    const why = colocateReason(this.spec, request, answers.hitTokens, past);
    if (why !== undefined) return why;
    const { index, reason, breakdown } = this.prefill.choose(request, states, ids, marks(), random);
    const state = states[index];
    if (state === undefined) return "no-prefill-endpoint";
    const { id: endpoint, hitTokens, heldTokens = hitTokens, prefixSource } = state;
    const { handoff } = this.spec;
    const held = heldTokens === hitTokens ? undefined : { heldTokens };
    const noted = this.prefill.noted(state);
    const prefill = { endpoint, handoff, reason, hitTokens, ...held, prefixSource, breakdown };
    return {
      state,
      prefill: noted === undefined ? prefill : { ...prefill, noted },
      isFirst: handoff === "prefill-first",
    };
  }
}

/** What of a request's past decides. */
export interface RequestPast {
  /** Times that it asked for an endpoint behind a part of its answer. */
  readonly continued: boolean;
  readonly transferFailed: boolean;
}

/**
 * Whether the endpoint that answers computes the prompt as well, of which it is believed to hold `hitTokens`; undefined
 * where another one is to compute it. As llm-d's decider by prefixes and Cognitora's `colocate_below_tokens`: what counts
 * are the tokens that are not cached, and a prompt exactly at the bound is shared.
 */
export function colocateReason(
  { colocateBelowTokens, promptTokensMin }: { readonly colocateBelowTokens: number; readonly promptTokensMin: number },
  { promptTokens, sequences, cacheRead, undivided }: RouteRequest,
  hitTokens: number,
  { continued, transferFailed }: RequestPast,
): ColocateReason | undefined {
  if (undivided === true || cacheRead === false) return "undivided";
  if (sequences > 1) return "several-sequences";
  if (continued) return "continued";
  if (transferFailed) return "transfer-failed";
  if (promptTokens < promptTokensMin || promptTokens < colocateBelowTokens) return "short";
  return promptTokens - hitTokens < colocateBelowTokens ? "cached" : undefined;
}

/** Who may do what, by a label of the endpoints. */
export class Roles {
  readonly #label: string;
  readonly #values: Readonly<Record<RequestPhase, ReadonlySet<string>>>;
  readonly #unlabelled: RolesSpec["unlabelled"];
  readonly #pairLabel: string;

  constructor({ label, prefill, decode, unlabelled, pairLabel }: RolesSpec) {
    this.#label = label;
    this.#values = { prefill: new Set(prefill), decode: new Set(decode) };
    this.#unlabelled = unlabelled;
    this.#pairLabel = pairLabel;
  }

  may(phase: RequestPhase, { labels }: Endpoint): boolean {
    const role = labels[this.#label];
    if (role === undefined) return this.#unlabelled === "both" || this.#unlabelled === phase;
    return this.#values[phase].has(role);
  }

  /** Whether blocks may go from one to the other. */
  mayPair(one: Endpoint, other: Endpoint): boolean {
    return this.#pairLabel === "" || one.labels[this.#pairLabel] === other.labels[this.#pairLabel];
  }
}
