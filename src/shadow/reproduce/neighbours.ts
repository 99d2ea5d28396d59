import type { ParameterDescription, ParameterTable } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ProfileSpec } from "#core/plugin/spec.ts";
import { signalsOf } from "#core/profile/build-profile.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { checkProfile } from "#core/profile/check.ts";
import { GAUGE_READINGS, type GaugeReading } from "./gauge-reading.ts";

/** A policy that may be another router's. */
export interface TriedPolicy {
  /** The profile that it is a variant of. */
  readonly base: string;
  /** What is otherwise than there: "prefix-match.above 0.3 -> 0.5". */
  readonly changes: readonly string[];
  readonly spec: ProfileSpec;
  readonly reading: GaugeReading;
  /** Of those that tie always the same one first, in an order that the decisions show. */
  readonly inOrder?: boolean;
}

/** Weights are tried at so many times what they are. */
const WEIGHT_FACTORS: readonly number[] = [0.25, 0.5, 2, 4];
/** So are numbers without two bounds. */
const FACTORS: readonly number[] = [0.25, 0.5, 0.8, 1.25, 2, 4];
/** Beside them, since a threshold that is never reached has no neighbour that is. */
const USUAL: readonly number[] = [0, 1, 1.5, 2, 4, 8, 16, 64];
/** Between two bounds. */
const STEPS: readonly number[] = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1];
const DIGITS = 4;

/** Whether a policy reads what engines report. */
function readsGauges(spec: ProfileSpec): boolean {
  return [...signalsOf(spec)].some((signal) => signal.startsWith("scrape:"));
}

/** The same policy with gauges read in all other ways; none where it reads none. */
export function otherReadings(policy: TriedPolicy): TriedPolicy[] {
  if (!readsGauges(policy.spec)) return [];
  return GAUGE_READINGS.filter((reading) => reading !== policy.reading).map((reading) => ({ ...policy, reading }));
}

/** The same policy with ties in a fixed order, if it leaves them to chance. */
export function tiesInOrder(policy: TriedPolicy): TriedPolicy[] {
  const { plugin, parameters } = policy.spec.picker;
  if (policy.inOrder === true || plugin !== "max-score" || parameters["tieBreak"] !== "random") return [];
  return [{ ...policy, inOrder: true }];
}

/** Every policy that differs in one thing: a weight, a parameter, a plugin less, how gauges are read. */
export function neighboursOf(policy: TriedPolicy): TriedPolicy[] {
  const { spec } = policy;
  const changed = (change: string, other: ProfileSpec): TriedPolicy[] =>
    checkProfile(other).length > 0 ? [] : [{ ...policy, spec: other, changes: [...policy.changes, change] }];
  return [
    ...otherReadings(policy),
    ...tiesInOrder(policy),
    ...parametersOf("pickers", [spec.picker]).flatMap(({ plugin, change }) =>
      changed(change, { ...spec, picker: plugin }),
    ),
    ...listed("filters", spec.filters).flatMap(({ list, change }) => changed(change, { ...spec, filters: list })),
    ...listed("scorers", spec.scorers).flatMap(({ list, change }) => changed(change, { ...spec, scorers: list })),
    ...spec.scorers
      .flatMap((scorer, i) => (spec.scorers.length < 2 ? [] : weights(spec, scorer.weight, i)))
      .flatMap(({ change, other }) => changed(change, other)),
    ...withoutOne(policy),
  ];
}

/** The policy without each of its filters and scorers in turn. */
export function withoutOne(policy: TriedPolicy): TriedPolicy[] {
  const { spec } = policy;
  const less = <T extends PluginSpec>(list: readonly T[], part: (list: readonly T[]) => ProfileSpec): TriedPolicy[] =>
    list.map(({ plugin }, i) => ({
      ...policy,
      spec: part(list.filter((_, j) => j !== i)),
      changes: [...policy.changes, `without ${plugin}`],
    }));
  const all = [
    ...less(spec.filters, (filters) => ({ ...spec, filters })),
    ...less(spec.scorers, (scorers) => ({ ...spec, scorers })),
  ];
  return all.filter((one) => checkProfile(one.spec).length === 0);
}

function weights(
  spec: ProfileSpec,
  before: number,
  i: number,
): { readonly change: string; readonly other: ProfileSpec }[] {
  return WEIGHT_FACTORS.map((factor) => {
    const weight = Number((before * factor).toPrecision(DIGITS));
    const scorers = spec.scorers.map((one, j) => (j === i ? { ...one, weight } : one));
    return { change: `weight of ${spec.scorers[i]!.plugin} ${before} -> ${weight}`, other: { ...spec, scorers } };
  });
}

function listed<T extends PluginSpec>(
  kind: keyof typeof CATALOG,
  list: readonly T[],
): { readonly list: readonly T[]; readonly change: string }[] {
  return list.flatMap((one, i) =>
    parametersOf(kind, [one]).map(({ plugin, change }) => ({
      list: list.map((other, j) => (j === i ? plugin : other)),
      change,
    })),
  );
}

function parametersOf<T extends PluginSpec>(
  kind: keyof typeof CATALOG,
  plugins: readonly T[],
): { readonly plugin: T; readonly change: string }[] {
  const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[kind];
  return plugins.flatMap((plugin) =>
    Object.entries(tables[plugin.plugin]!.parameters).flatMap(([name, meaning]) => {
      const before = plugin.parameters[name] ?? meaning.default;
      return otherValues(before, meaning).map((value) => ({
        plugin: { ...plugin, parameters: { ...plugin.parameters, [name]: value } },
        change: `${plugin.plugin}.${name} ${String(before)} -> ${String(value)}`,
      }));
    }),
  );
}

function otherValues(before: ParameterValue, meaning: ParameterDescription): ParameterValue[] {
  switch (meaning.type) {
    case "boolean":
      return [before !== true];
    case "choice":
      return meaning.values.filter((value) => value !== before);
    case "string":
      return [];
    case "number":
    case "integer": {
      const { type, min = -Infinity, max = Infinity } = meaning;
      const from = Number(before);
      const isBounded = Number.isFinite(min) && Number.isFinite(max) && type === "number";
      const values = isBounded
        ? STEPS.map((step) => min + step * (max - min))
        : [...FACTORS.map((factor) => from * factor), ...USUAL];
      const rounded = values.map((value) =>
        type === "integer" ? Math.round(value) : Number(value.toPrecision(DIGITS)),
      );
      return [...new Set(rounded)].filter((value) => value !== from && value >= min && value <= max);
    }
  }
}
