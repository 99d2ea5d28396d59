import type { AdmissionSpec } from "../admission/admission-spec.ts";

/** What chooses an endpoint: plain data, names from the catalog. */
export interface ChooserSpec {
  readonly filters: readonly PluginSpec[];
  readonly scorers: readonly ScorerSpec[];
  readonly picker: PluginSpec;
}

/** A chooser that was checked, with what may be left out left out. */
export interface PartialChooser {
  readonly filters?: readonly PluginSpec[] | undefined;
  readonly scorers?: readonly ScorerSpec[] | undefined;
  readonly picker: PluginSpec;
}

/** A profile as a file or a trace holds it. Its own chooser is of the endpoint that answers. */
export interface ProfileSpec extends ChooserSpec {
  /** Prompts may be computed elsewhere; absent where the endpoint that answers computes them all. */
  readonly disaggregation?: DisaggregationSpec;
}

/**
 * - prefill-first: the prompt is computed at one endpoint, and then the request goes to the other, which fetches the blocks
 * - together: the request goes to both at once, and they find each other
 */
export const HANDOFFS = ["prefill-first", "together"] as const;
export type PrefillOrder = (typeof HANDOFFS)[number];

/** How a prompt that is computed elsewhere gets to who answers. */
export interface PrefillTerms {
  readonly handoff: PrefillOrder;
}

/** What is taken for true of another router's decision on who computes the prompt. */
export const PEER_PREFILL = { handoff: "prefill-first", reason: "" } as const satisfies PrefillTerms & {
  reason: string;
};

/** What endpoints without the label of roles do. */
export const UNLABELLED = ["decode", "both", "none"] as const;

/** Which endpoints compute prompts for others, and which answer. An endpoint may do both. */
export interface RolesSpec {
  /** Name of the label that has an endpoint's role. */
  readonly label: string;
  /** Its values for those that compute prompts for others. */
  readonly prefill: readonly string[];
  /** Its values for those that answer. */
  readonly decode: readonly string[];
  readonly unlabelled: (typeof UNLABELLED)[number];
  /** Both endpoints must have the same value of this label, as where transfers reach no further; "" for any two. */
  readonly pairLabel: string;
}

/** The two phases of a request whose prompt is computed at one endpoint and whose answer is made at another. */
export interface DisaggregationSpec {
  /** Chooses the endpoint that computes the prompt, after the one that answers was chosen. */
  readonly prefill: ChooserSpec;
  /**
   * With fewer prompt tokens than this outside its cache, the endpoint that answers computes them itself; 0: it never
   * does.
   */
  readonly colocateBelowTokens: number;
  /** A shorter prompt stays at one endpoint, whatever is cached. */
  readonly promptTokensMin: number;
  readonly handoff: PrefillOrder;
  readonly roles: RolesSpec;
}

export interface PluginSpec {
  /** Name in the catalog. */
  readonly plugin: string;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
}

export interface ScorerSpec extends PluginSpec {
  /** Relative weight, above 0. The profile normalises the weights to sum 1. */
  readonly weight: number;
}

export type ParameterValue = number | string | boolean;

/** Number of the policy that a router starts with. */
export const FIRST_POLICY_VERSION = 1;

/** A policy as the router has it, whole. */
export interface PolicySpec {
  /** Counts policies up from FIRST_POLICY_VERSION. */
  readonly version: number;
  /** Profiles by name; each stays warm, whether requests select it or not. */
  readonly profiles: Readonly<Record<string, ProfileSpec>>;
  /** Names the one for requests that select none. */
  readonly defaultProfile: string;
  /** Who is let in; everybody where it is left out. */
  readonly admission?: AdmissionSpec | undefined;
}
