import { CATALOG } from "#core/profile/catalog.ts";
import { checkProfile } from "#core/profile/check.ts";
import type { ParameterDescription, ParameterTable } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ProfileSpec, ScorerSpec } from "#core/plugin/spec.ts";
import type { Random } from "#core/base/random.ts";

/** What a search may put together. */
export interface PolicySpace {
  /** Scorers that may be added. */
  readonly scorers: readonly string[];
  /** Whether a policy may be proposed, beside being one that the router accepts. */
  readonly accepts: (spec: ProfileSpec) => boolean;
}

/** Scorers that need nothing but what every engine reports and the router itself knows. */
export const COMMON_SCORERS: readonly string[] = [
  "prefix-affinity",
  "queue-depth",
  "kv-utilization",
  "load-balance",
  "active-request",
  "added-latency",
  "predicted-latency",
  "lmetric",
  "token-load",
  "windowed-work",
  "session-affinity",
];

/** A policy and what it was made from, for people. */
export interface Variant {
  readonly spec: ProfileSpec;
  /** "imbalance.factor 2 -> 4" */
  readonly change: string;
  /** Place of that policy among those that variants are made from. */
  readonly from: number;
}

type Changed = Omit<Variant, "from">;

const FACTORS: readonly number[] = [0.25, 0.5, 0.8, 1.25, 2, 4];
const SCORERS_MAX = 5;
const TRIES_MAX = 20;
/** Weights keep this many digits, so that the same policy is not met twice. */
const DIGITS = 3;
const IMBALANCE: PluginSpec = { plugin: "imbalance", parameters: { factor: 2, slack: 8 } };

/** A policy near one of `elite`, which is not empty; undefined where none was found that the space accepts. */
export function variantOf(elite: readonly ProfileSpec[], space: PolicySpace, random: Random): Variant | undefined {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const from = random.below(elite.length);
    const spec = elite[from]!;
    const other = elite[random.below(elite.length)]!;
    const variant = CHANGES[random.below(CHANGES.length)]!({ spec, other, space, random });
    if (variant === undefined || checkProfile(variant.spec).length > 0 || !space.accepts(variant.spec)) continue;
    return { ...variant, from };
  }
  return undefined;
}

/** The same text for the same policy, whatever the order of its parameters. */
export function policyKey(spec: ProfileSpec): string {
  return JSON.stringify(spec, (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

interface Change {
  readonly spec: ProfileSpec;
  readonly other: ProfileSpec;
  readonly space: PolicySpace;
  readonly random: Random;
}

function weighed({ spec, random }: Change): Changed | undefined {
  if (spec.scorers.length < 2) return undefined;
  const at = random.below(spec.scorers.length);
  const factor = FACTORS[random.below(FACTORS.length)]!;
  const { plugin, weight } = spec.scorers[at]!;
  const heavier = round(weight * factor);
  const scorers = spec.scorers.map((one, i) => (i === at ? { ...one, weight: heavier } : one));
  return { spec: { ...spec, scorers }, change: `weight of ${plugin} ${weight} -> ${heavier}` };
}

function added({ spec, space, random }: Change): Changed | undefined {
  const absent = space.scorers.filter((name) => !spec.scorers.some(({ plugin }) => plugin === name));
  if (absent.length === 0 || spec.scorers.length === 0 || spec.scorers.length >= SCORERS_MAX) return undefined;
  const plugin = absent[random.below(absent.length)]!;
  const all = spec.scorers.reduce((sum, one) => sum + one.weight, 0);
  const weight = round(all * [0.15, 0.5, 1][random.below(3)]!);
  const scorers: ScorerSpec[] = [...spec.scorers, { plugin, parameters: {}, weight }];
  return { spec: { ...spec, scorers }, change: `${plugin} added with weight ${weight}` };
}

function removed({ spec, random }: Change): Changed | undefined {
  const count = spec.scorers.length + spec.filters.length;
  if (spec.scorers.length < 2) return undefined;
  const at = random.below(count);
  const inFilters = at - spec.scorers.length;
  const { plugin } = spec.scorers[at] ?? spec.filters[inFilters]!;
  const scorers = spec.scorers.filter((_, i) => i !== at);
  const filters = spec.filters.filter((_, i) => i !== inFilters);
  return { spec: { ...spec, scorers, filters }, change: `without ${plugin}` };
}

function guarded({ spec }: Change): Changed | undefined {
  if (spec.filters.some(({ plugin }) => plugin === IMBALANCE.plugin)) return undefined;
  return { spec: { ...spec, filters: [IMBALANCE, ...spec.filters] }, change: "behind imbalance" };
}

/** The scorers of two policies, each with half of the weight. */
function joined({ spec, other }: Change): Changed | undefined {
  const more = other.scorers.filter((one) => !spec.scorers.some(({ plugin }) => plugin === one.plugin));
  if (more.length === 0 || spec.scorers.length === 0 || spec.scorers.length + more.length > SCORERS_MAX)
    return undefined;
  const scale = (scorers: readonly ScorerSpec[]) => {
    const all = scorers.reduce((sum, { weight }) => sum + weight, 0);
    return scorers.map((one) => ({ ...one, weight: round(one.weight / all) }));
  };
  const scorers = [...scale(spec.scorers), ...scale(more)];
  return { spec: { ...spec, scorers }, change: `with ${more.map(({ plugin }) => plugin).join(" and ")}` };
}

function adjusted({ spec, random }: Change): Changed | undefined {
  const places = [
    ...spec.filters.map((one, i) => ({ one, kind: "filters" as const, i })),
    ...spec.scorers.map((one, i) => ({ one, kind: "scorers" as const, i })),
    { one: spec.picker, kind: "pickers" as const, i: 0 },
  ].flatMap((place) => {
    const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[place.kind];
    return Object.entries(tables[place.one.plugin]!.parameters).map(([name, meaning]) => ({ ...place, name, meaning }));
  });
  const place = places[random.below(Math.max(1, places.length))];
  if (place === undefined) return undefined;
  const { one, kind, i, name, meaning } = place;
  const before = one.parameters[name] ?? meaning.default;
  const after = neighbour(before, meaning, random);
  if (after === undefined || after === before) return undefined;
  const changed = <T extends PluginSpec>(plugin: T): T => ({
    ...plugin,
    parameters: { ...plugin.parameters, [name]: after },
  });
  const within = <T extends PluginSpec>(all: readonly T[]) =>
    all.map((plugin, j) => (j === i ? changed(plugin) : plugin));
  const parts = {
    filters: () => ({ ...spec, filters: within(spec.filters) }),
    scorers: () => ({ ...spec, scorers: within(spec.scorers) }),
    pickers: () => ({ ...spec, picker: changed(spec.picker) }),
  };
  return { spec: parts[kind](), change: `${one.plugin}.${name} ${String(before)} -> ${String(after)}` };
}

function neighbour(before: ParameterValue, meaning: ParameterDescription, random: Random): ParameterValue | undefined {
  switch (meaning.type) {
    case "boolean":
      return before !== true;
    case "choice":
      return meaning.values[random.below(meaning.values.length)];
    case "string":
      return undefined;
    case "number":
    case "integer": {
      const { min = -Infinity, max = Infinity } = meaning;
      const from = before === 0 ? (Number.isFinite(max) ? max / 4 : 1) : Number(before);
      const value = from * FACTORS[random.below(FACTORS.length)]!;
      return Math.min(max, Math.max(min, meaning.type === "integer" ? Math.round(value) : round(value)));
    }
  }
}

/** How a policy may become another one; parameters and weights twice as often as the rest. */
const CHANGES: readonly ((change: Change) => Changed | undefined)[] = [
  weighed,
  weighed,
  adjusted,
  adjusted,
  added,
  removed,
  guarded,
  joined,
];

function round(value: number): number {
  return Number(value.toPrecision(DIGITS));
}
