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
