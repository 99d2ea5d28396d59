import { isDeepStrictEqual } from "node:util";
import { stagesOf } from "#core/profile/profile-stages.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { type ParameterTable, resolveParameters } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ProfileSpec, ScorerSpec } from "#core/plugin/spec.ts";
import { AIBRIX_PARAMETERS } from "./aibrix-environment.ts";
import type { Exported } from "./export-llm-d.ts";
import { loadNativeProfile } from "./native-profile.ts";
import { STRATEGIES } from "./peer-aibrix.ts";

/** Weights of a composite strategy are whole numbers up to this. */
const WEIGHT_MAX = 1_000_000;
/** Decimal places that weights are taken to have at most. */
const PLACES_MAX = 6;

/**
 * The profile as the environment of AIBrix's gateway plugins: one of its strategies with the parameters that variables
 * set, or a weighted sum of several. Read back, it decides the same.
 */
export function exportAibrix(spec: ProfileSpec): Exported<Readonly<Record<string, string>>> {
  const stages = stagesOf(spec);
  if (stages.length > 0)
    return { ok: false, reasons: stages.map((stage) => `${stage}: AIBrix's strategies choose one endpoint`) };
  for (const [name, { profile }] of Object.entries(STRATEGIES)) {
    const variables = variablesFor(spec, strategySpec(profile));
    if (variables !== undefined) return { ok: true, value: { AIBRIX_ROUTING_ALGORITHM: name, ...variables } };
  }
  return composite(spec);
}

/** Profiles that come with gnomon, which do not change. */
const strategySpecs = new Map<string, ProfileSpec>();

function strategySpec(profile: string): ProfileSpec {
  const spec = strategySpecs.get(profile) ?? loadNativeProfile(profile).spec;
  strategySpecs.set(profile, spec);
  return spec;
}

/** Variables that make the strategy's profile this one; undefined where none do. */
function variablesFor(spec: ProfileSpec, strategy: ProfileSpec): Record<string, string> | undefined {
  const { filters, scorers } = spec;
  if (filters.length !== strategy.filters.length || scorers.length !== strategy.scorers.length) return undefined;
  if (!isDeepStrictEqual(resolved("pickers", spec.picker), resolved("pickers", strategy.picker))) return undefined;
  const variables: Record<string, string> = {};
  const kinds = ["filters", "scorers"] as const;
  for (const kind of kinds) {
    for (const [i, plugin] of spec[kind].entries()) {
      const other: PluginSpec = strategy[kind][i]!;
      if (plugin.plugin !== other.plugin) return undefined;
      const [ours, theirs] = [resolved(kind, plugin).parameters, resolved(kind, other).parameters];
      for (const [parameter, value] of Object.entries(ours)) {
        if (value === theirs[parameter]) continue;
        const variable = variableOf(kind, plugin.plugin, parameter);
        if (variable === undefined) return undefined;
        variables[variable] = String(value);
      }
    }
  }
  const ratio = (all: readonly ScorerSpec[], i: number) =>
    all[i]!.weight / all.reduce((sum, one) => sum + one.weight, 0);
  return scorers.every((_, i) => Math.abs(ratio(scorers, i) - ratio(strategy.scorers, i)) < 1e-12)
    ? variables
    : undefined;
}

function variableOf(kind: "filters" | "scorers", plugin: string, parameter: string): string | undefined {
  const found = Object.entries(AIBRIX_PARAMETERS).find(
    ([, one]) => one.kind === kind && one.plugin === plugin && one.parameter === parameter,
  );
  return found?.[0];
}

function composite({ filters, scorers, picker }: ProfileSpec): Exported<Readonly<Record<string, string>>> {
  const reasons: string[] = [];
  if (filters.length > 0) reasons.push("filters: a weighted sum of AIBrix's strategies has none");
  const wanted = { plugin: "max-score", parameters: { tieBreak: "random", epsilon: 1e-9 } };
  if (!isDeepStrictEqual(resolved("pickers", picker), resolved("pickers", wanted)))
    reasons.push("picker: AIBrix takes the largest sum, one of several at random");
  const names = scorers.map((scorer, i) => {
    const own = JSON.stringify(resolved("scorers", scorer));
    const found = Object.entries(STRATEGIES).find(
      ([, one]) => one.scorer !== undefined && JSON.stringify(resolved("scorers", one.scorer)) === own,
    );
    if (found === undefined) reasons.push(`scorers[${i}]: AIBrix has no strategy that scores as ${scorer.plugin} does`);
    return found?.[0] ?? "";
  });
  const weights = wholeWeights(scorers.map(({ weight }) => weight));
  if (weights === undefined) reasons.push(`scorers: AIBrix's weights are whole numbers up to ${WEIGHT_MAX}`);
  if (scorers.length < 2) reasons.push("scorers: AIBrix has no such strategy");
  if (reasons.length > 0 || weights === undefined) return { ok: false, reasons };
  return { ok: true, value: { AIBRIX_ROUTING_ALGORITHM: names.map((name, i) => `${name}:${weights[i]}`).join(",") } };
}

/** Whole numbers with the same ratios; undefined where there are none that are small enough. */
function wholeWeights(weights: readonly number[]): readonly number[] | undefined {
  for (let places = 0; places <= PLACES_MAX; places++) {
    const whole = weights.map((weight) => Math.round(weight * 10 ** places));
    const isExact = whole.every((one, i) => Math.abs(one / 10 ** places - weights[i]!) <= 1e-12 * weights[i]!);
    if (isExact) return whole.every((one) => one <= WEIGHT_MAX) ? whole : undefined;
  }
  return undefined;
}

/** With the parameters that are left out. */
function resolved(kind: "filters" | "scorers" | "pickers", { plugin, parameters }: PluginSpec) {
  const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[kind];
  const values: Readonly<Record<string, ParameterValue>> = resolveParameters(tables[plugin]!.parameters, parameters);
  return { plugin, parameters: values };
}
