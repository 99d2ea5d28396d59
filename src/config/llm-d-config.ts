import * as z from "zod";
import { CATALOG } from "#core/profile/catalog.ts";
import { checkProfile, completeProfile, type PartialProfile } from "#core/profile/check.ts";
import { type ParameterTable, checkParameters, shown } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ScorerSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { LLM_D_ELSEWHERE, LLM_D_MISSING, LLM_D_PLUGINS, type LlmDPlugin } from "./llm-d-plugins.ts";
import { inPhases, isPhasePlugin, type LlmDPhases, ROLE_FILTERS, llmDPhases } from "./llm-d-phases.ts";
import { type NamedProfile, signalsAs } from "./native-profile.ts";
import { checkShape, pathText, problemLine } from "./problem.ts";
import type { Path } from "./schema-node.ts";
import type { YamlFile } from "./yaml-file.ts";

const anything = z.unknown().optional();

const SCHEMA = z.strictObject({
  apiVersion: z.enum(["llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1"]),
  kind: z.literal("EndpointPickerConfig"),
  plugins: z
    .array(
      z.strictObject({
        name: z.string().min(1).optional(),
        type: z.string().min(1),
        parameters: z.record(z.string(), z.unknown()).default({}),
      }),
    )
    .default([]),
  schedulingProfiles: z
    .array(
      z.strictObject({
        name: z.string().min(1),
        plugins: z.array(z.strictObject({ pluginRef: z.string().min(1), weight: z.number().optional() })).default([]),
      }),
    )
    .default([]),
  featureGates: anything,
  dataLayer: anything,
  flowControl: anything,
  requestHandler: anything,
  saturationDetector: anything,
  parser: anything,
});

type Config = z.output<typeof SCHEMA>;
type Declared = Config["plugins"][number];

/** Sections that are no part of a routing profile. */
const SECTIONS_ELSEWHERE = [
  "featureGates",
  "dataLayer",
  "flowControl",
  "requestHandler",
  "saturationDetector",
  "parser",
];

/** llm-d's plugins without a configuration. */
const DEFAULT_PLUGINS: readonly (readonly [type: string, weight: number])[] = [
  ["queue-scorer", 2],
  ["kv-cache-utilization-scorer", 2],
  ["prefix-cache-scorer", 3],
];

interface Problem {
  readonly path: Path;
  readonly message: string;
}

/**
 * llm-d's EndpointPickerConfig as a profile, with llm-d's own defaults filled in. Throws ConfigError for all plugins of
 * the scheduling profile that are not known here, by name and place. What is configured elsewhere here (data sources,
 * producers, flow control) is named in the profile's summary.
 */
export function llmDProfile({ name: file, value, lineOf }: YamlFile, name: string): NamedProfile {
  const checked = checkShape(SCHEMA, value);
  const place = (path: Path) => `${file} line ${lineOf(path)}`;
  if (!checked.ok) throw new ConfigError(checked.problems.map((one) => problemLine(one, place(one.path))));
  const reading = new Reading(checked.value);
  const spec = reading.spec();
  const problems = reading.problems;
  if (problems.length > 0) throw new ConfigError(problems.map((one) => problemLine(one, place(one.path))));
  const wrong = checkProfile(spec);
  if (wrong.length > 0) throw new ConfigError(wrong.map((one) => `${one.path}: ${one.message} (${file})`));
  const left = reading.elsewhere();
  return {
    name,
    summary: `llm-d configuration${left === "" ? "" : `; configured elsewhere here: ${left}`}`,
    source: "llm-d EndpointPickerConfig",
    spec: completeProfile(spec),
    ...signalsAs("llm-d"),
  };
}

/** What one scheduling profile is made of. */
class Collected {
  readonly filters: PluginSpec[] = [];
  readonly scorers: ScorerSpec[] = [];
  readonly pickers: PluginSpec[] = [];

  get spec() {
    const picker = this.pickers[0] ?? { plugin: "max-score", parameters: { tieBreak: "random" } };
    return { filters: this.filters, scorers: this.scorers, picker };
  }
}

const NO_TYPES: ReadonlySet<string> = new Set();

class Reading {
  readonly problems: Problem[] = [];
  readonly #config: Config;
  readonly #phases: LlmDPhases | undefined;

  constructor(config: Config) {
    this.#config = config;
    this.#phases = llmDPhases(config.plugins, (path, message) => this.problems.push({ path, message }));
  }

  spec(): PartialProfile {
    const { plugins, schedulingProfiles } = this.#config;
    if (plugins.length === 0) {
      const chooser = new Collected();
      for (const [type, weight] of DEFAULT_PLUGINS)
        this.#take(chooser, { type, parameters: {} }, weight, ["plugins"], []);
      return chooser.spec;
    }
    plugins.forEach(({ type }, i) => {
      const known = Object.hasOwn(LLM_D_PLUGINS, type) || Object.hasOwn(LLM_D_ELSEWHERE, type) || isPhasePlugin(type);
      if (!known) this.#unknown(type, i);
    });
    if (this.#phases !== undefined) return this.#inPhases(this.#phases);
    if (schedulingProfiles.length > 1) {
      const names = schedulingProfiles.map((one) => one.name).join(", ");
      const message = `expected one profile, or a disagg-profile-handler that chooses between two, got ${names}`;
      this.problems.push({ path: ["schedulingProfiles"], message });
    }
    return this.#chooser(0, NO_TYPES).spec;
  }

  elsewhere(): string {
    const sections = SECTIONS_ELSEWHERE.filter((key) => this.#config[key as keyof Config] !== undefined);
    const types = this.#config.plugins.map(({ type }) => type).filter((type) => Object.hasOwn(LLM_D_ELSEWHERE, type));
    return [...sections, ...types.map((type) => `${type} (${LLM_D_ELSEWHERE[type] ?? ""})`)].join(", ");
  }

  #inPhases({ decode, prefill, divided }: LlmDPhases): PartialProfile {
    const { schedulingProfiles } = this.#config;
    const numberOf = (name: string): number => {
      const number = schedulingProfiles.findIndex((one) => one.name === name);
      const names = schedulingProfiles.map((one) => one.name).join(", ") || "none";
      const message = `expected a profile ${name}, got ${names}`;
      if (number < 0) this.problems.push({ path: ["schedulingProfiles"], message });
      return Math.max(0, number);
    };
    if (divided === undefined) return this.#chooser(numberOf(decode), NO_TYPES).spec;
    const answers = this.#chooser(numberOf(decode), ROLE_FILTERS).spec;
    return inPhases(answers, divided, this.#chooser(numberOf(prefill), ROLE_FILTERS).spec);
  }

  /** One scheduling profile, without plugins of the types that are left out. */
  #chooser(number: number, left: ReadonlySet<string>): Collected {
    const { plugins, schedulingProfiles } = this.#config;
    const profile = schedulingProfiles[number];
    const chooser = new Collected();
    if (profile === undefined) {
      plugins.forEach((one, i) => this.#take(chooser, one, undefined, ["plugins", i], ["plugins", i]));
      return chooser;
    }
    profile.plugins.forEach(({ pluginRef, weight }, i) => {
      const path = ["schedulingProfiles", number, "plugins", i];
      const at = plugins.findIndex(({ name, type }) => (name ?? type) === pluginRef);
      const declared = plugins[at];
      if (declared === undefined) {
        const names = plugins.map(({ name, type }) => name ?? type).join(", ");
        const message = `expected one of the declared ${names}, got ${shown(pluginRef)}`;
        this.problems.push({ path: [...path, "pluginRef"], message });
      } else if (!left.has(declared.type)) this.#take(chooser, declared, weight, path, ["plugins", at]);
    });
    return chooser;
  }

  #unknown(type: string, i: number): void {
    const known = Object.keys(LLM_D_PLUGINS).join(", ");
    const missing = Object.hasOwn(LLM_D_MISSING, type) ? ` (${LLM_D_MISSING[type]})` : "";
    this.problems.push({
      path: ["plugins", i, "type"],
      message: `expected one of ${known}, got the unsupported ${type}${missing}`,
    });
  }

  #take(chooser: Collected, declared: Declared, weight: number | undefined, path: Path, declaredAt: Path): void {
    const known = Object.hasOwn(LLM_D_PLUGINS, declared.type) ? LLM_D_PLUGINS[declared.type] : undefined;
    if (known === undefined) return;
    const plugin = { plugin: known.plugin, parameters: this.#parameters(known, declared, declaredAt) };
    if (known.kind === "scorer") {
      if (weight !== undefined && !(weight > 0)) {
        this.problems.push({ path: [...path, "weight"], message: `expected a number above 0, got ${shown(weight)}` });
      } else chooser.scorers.push({ ...plugin, weight: weight ?? 1 });
    } else if (known.kind === "filter") chooser.filters.push(plugin);
    else if (chooser.pickers.push(plugin) > 1) {
      this.problems.push({ path, message: `expected one picker, got ${declared.type} beside another` });
    }
  }

  #parameters(known: LlmDPlugin, { parameters }: Declared, declaredAt: Path): Record<string, ParameterValue> {
    const { names, fixed = {}, only = {}, silent = [] } = known;
    const ours: Record<string, ParameterValue> = { ...fixed };
    for (const [key, value] of flat(parameters, [...Object.keys(names), ...silent])) {
      const path = [...declaredAt, "parameters", key];
      const name = Object.hasOwn(names, key) ? names[key] : undefined;
      const given = Array.isArray(value) ? value.join(",") : value;
      if (name !== undefined) {
        const problem = checkParameters(parametersOf(known), { [name]: given }, "")[0];
        if (problem === undefined) ours[name] = given as ParameterValue;
        else this.problems.push({ path, message: problem.message });
      } else if (Object.hasOwn(only, key)) {
        if (value !== only[key])
          this.problems.push({ path, message: `expected ${shown(only[key])}, got ${shown(value)}` });
      } else if (!silent.includes(key)) {
        const accepted = [...Object.keys(names), ...Object.keys(only), ...silent].join(", ") || "none";
        this.problems.push({ path, message: `expected one of ${accepted}, got the unsupported ${pathText([key])}` });
      }
    }
    return ours;
  }
}

/** Mappings that hold a parameter by a name with a point, as entries of such names. */
function flat(parameters: Readonly<Record<string, unknown>>, names: readonly string[]): [string, unknown][] {
  return Object.entries(parameters).flatMap(([key, value]): [string, unknown][] => {
    const isMapping = typeof value === "object" && value !== null && names.some((name) => name.startsWith(`${key}.`));
    return isMapping ? Object.entries(value).map(([inner, one]) => [`${key}.${inner}`, one]) : [[key, value]];
  });
}

function parametersOf({ kind, plugin }: LlmDPlugin): ParameterTable {
  const tables: Readonly<
    Record<LlmDPlugin["kind"], Readonly<Record<string, { readonly parameters: ParameterTable }>>>
  > = {
    filter: CATALOG.filters,
    scorer: CATALOG.scorers,
    picker: CATALOG.pickers,
  };
  return tables[kind][plugin]!.parameters;
}
