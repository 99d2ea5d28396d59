import type { AdmissionSpec } from "../admission/admission-spec.ts";

/** A profile as a file or a trace holds it: plain data, names from the catalog. */
export interface ProfileSpec {
  readonly filters: readonly PluginSpec[];
  readonly scorers: readonly ScorerSpec[];
  readonly picker: PluginSpec;
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
