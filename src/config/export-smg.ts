import { CATALOG } from "#core/profile/catalog.ts";
import { type ParameterTable, resolveParameters } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ProfileSpec } from "#core/plugin/spec.ts";
import { stagesOf } from "#core/profile/profile-stages.ts";
import type { Exported } from "./export-llm-d.ts";

/** Routers with SMG's options: sgl-project's, its successor, and vLLM's, which began as a copy of it. */
export const SMG_KINDS = ["sglang-router", "smg", "vllm-router"] as const;
export type SmgKind = (typeof SMG_KINDS)[number];

export function isSmgKind(router: string): router is SmgKind {
  return SMG_KINDS.some((one) => one === router);
}

/** Options of the command line, by name and without values where that is "". */
export type SmgFlags = Readonly<Record<string, string>>;

/**
 * The profile as options of such a router: its policy, and that one's thresholds. How ties are broken there is its own, so
 * that a profile may break them in any way. Read back by docs/migrate.md's table, it decides the same but for those.
 */
export function exportSmg(spec: ProfileSpec, router: SmgKind): Exported<SmgFlags> {
  const stages = stagesOf(spec);
  if (stages.length > 0)
    return { ok: false, reasons: stages.map((stage) => `${stage}: ${router} chooses one endpoint`) };
  const policies = Object.entries(POLICIES).filter(([name]) => HAS[name]?.includes(router) !== false);
  for (const [name, flagsOf] of policies) {
    const flags = flagsOf(spec);
    if (flags !== undefined) return { ok: true, value: { policy: name, ...flags } };
  }
  const names = policies.map(([name]) => name).join(", ");
  const reason = `${router} has ${names}, of fixed parts, and this profile is none of them`;
  return { ok: false, reasons: [reason] };
}

/** Options beside the policy's name; undefined where the profile is another policy. */
type FlagsOf = (spec: ProfileSpec) => SmgFlags | undefined;

const POLICIES: Readonly<Record<string, FlagsOf>> = {
  round_robin: (spec) => (isOnly(spec, "round-robin") ? {} : undefined),
  random: (spec) => (isOnly(spec, "random") ? {} : undefined),
  power_of_two: (spec) => (hasParts(spec, POWER_OF_TWO) ? {} : undefined),
  consistent_hashing: (spec) => (hasParts(spec, HASHED) ? {} : undefined),
  consistent_hash: (spec) => (hasParts(spec, HASHED) ? {} : undefined),
  sticky_least_loaded: (spec) => (hasParts(spec, STICKY) ? {} : undefined),
  cache_aware: cacheAware,
};

/** Who has a policy that not all of them have. */
const HAS: Readonly<Record<string, readonly SmgKind[]>> = {
  consistent_hashing: ["smg"],
  consistent_hash: ["vllm-router"],
  sticky_least_loaded: ["vllm-router"],
};

/** A plugin, with the values that parameters must have; of the others any. */
type Part = readonly [plugin: string, values: Readonly<Record<string, ParameterValue>>];
interface Parts {
  readonly filters: readonly Part[];
  readonly scorers: readonly Part[];
}

const LEAST: readonly Part[] = [["least-request", {}]];
const POWER_OF_TWO: Parts = { filters: [["power-of-two", { choices: 2 }]], scorers: LEAST };
const HASHED: Parts = { filters: [], scorers: [["consistent-hash", { key: "session" }]] };
const STICKY: Parts = { filters: [["session-pin", { key: "session" }]], scorers: LEAST };
const CACHE_AWARE: Parts = {
  filters: [
    ["imbalance-gate", { onImbalance: "least-request" }],
    ["prefix-match", { deviationGuard: false, granularity: "blocks" }],
  ],
  scorers: LEAST,
};

function cacheAware(spec: ProfileSpec): SmgFlags | undefined {
  if (!hasParts(spec, CACHE_AWARE)) return undefined;
  const [gate, match] = spec.filters.map((one) => valuesOf("filters", one)) as [Values, Values];
  const absolute = Number(gate["absolute"]);
  // The option takes whole numbers of 0 or more.
  if (!Number.isInteger(absolute) || absolute < 0) return undefined;
  return {
    "cache-threshold": String(match["above"]),
    "balance-abs-threshold": String(absolute),
    "balance-rel-threshold": String(gate["relative"]),
  };
}

type Values = Readonly<Record<string, ParameterValue>>;

function isOnly({ filters, scorers, picker }: ProfileSpec, plugin: string): boolean {
  return filters.length === 0 && scorers.length === 0 && picker.plugin === plugin;
}

function hasParts(spec: ProfileSpec, { filters, scorers }: Parts): boolean {
  const matches = (kind: "filters" | "scorers", parts: readonly Part[]): boolean =>
    spec[kind].length === parts.length &&
    spec[kind].every((one, i) => {
      const [plugin, wanted] = parts[i]!;
      const values = one.plugin === plugin ? valuesOf(kind, one) : {};
      return one.plugin === plugin && Object.entries(wanted).every(([name, value]) => values[name] === value);
    });
  return spec.picker.plugin === "max-score" && matches("filters", filters) && matches("scorers", scorers);
}

function valuesOf(kind: "filters" | "scorers", { plugin, parameters }: PluginSpec): Values {
  const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[kind];
  return resolveParameters(tables[plugin]!.parameters, parameters);
}

/** As a shell takes them. */
export function smgCommandLine(flags: SmgFlags): string {
  return Object.entries(flags)
    .map(([name, value]) => `--${name} ${value}`)
    .join(" ");
}
