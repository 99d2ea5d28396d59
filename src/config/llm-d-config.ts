import * as z from "zod";
import { CATALOG } from "#core/catalog.ts";
import { checkProfile, completeProfile } from "#core/profile/check.ts";
import { type ParameterTable, checkParameters, shown } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ScorerSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { LLM_D_ELSEWHERE, LLM_D_PLUGINS, type LlmDPlugin } from "./llm-d-plugins.ts";
import { type NamedProfile, signalsOf } from "./native-profile.ts";
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
    ...signalsOf("llm-d"),
  };
}

class Reading {
  readonly problems: Problem[] = [];
  readonly #config: Config;
  readonly #filters: PluginSpec[] = [];
  readonly #scorers: ScorerSpec[] = [];
  readonly #pickers: PluginSpec[] = [];

  constructor(config: Config) {
    this.#config = config;
  }

  spec() {
    this.#readDeclarations();
    if (this.#pickers.length === 0) this.#pickers.push({ plugin: "max-score", parameters: { tieBreak: "random" } });
    return { filters: this.#filters, scorers: this.#scorers, picker: this.#pickers[0]! };
  }

  elsewhere(): string {
    const sections = SECTIONS_ELSEWHERE.filter((key) => this.#config[key as keyof Config] !== undefined);
    const types = this.#config.plugins.map(({ type }) => type).filter((type) => Object.hasOwn(LLM_D_ELSEWHERE, type));
    return [...sections, ...types.map((type) => `${type} (${LLM_D_ELSEWHERE[type] ?? ""})`)].join(", ");
  }

  #readDeclarations(): void {
    const { plugins, schedulingProfiles } = this.#config;
    if (plugins.length === 0) {
      for (const [type, weight] of DEFAULT_PLUGINS) this.#take({ type, parameters: {} }, weight, ["plugins"], []);
      return;
    }
    plugins.forEach(({ type }, i) => {
      if (!Object.hasOwn(LLM_D_PLUGINS, type) && !Object.hasOwn(LLM_D_ELSEWHERE, type)) this.#unknown(type, i);
    });
    if (schedulingProfiles.length > 1) {
      const names = schedulingProfiles.map((one) => one.name).join(", ");
      const message = `expected one profile, since prefill and decode are not routed apart here, got ${names}`;
      this.problems.push({ path: ["schedulingProfiles"], message });
      return;
    }
    const [profile] = schedulingProfiles;
    if (profile === undefined) {
      plugins.forEach((declared, i) => this.#take(declared, undefined, ["plugins", i], ["plugins", i]));
      return;
    }
    profile.plugins.forEach(({ pluginRef, weight }, i) => {
      const path = ["schedulingProfiles", 0, "plugins", i];
      const number = plugins.findIndex(({ name, type }) => (name ?? type) === pluginRef);
      const declared = plugins[number];
      if (declared === undefined) {
        const names = plugins.map(({ name, type }) => name ?? type).join(", ");
        const message = `expected one of the declared ${names}, got ${shown(pluginRef)}`;
        this.problems.push({ path: [...path, "pluginRef"], message });
      } else this.#take(declared, weight, path, ["plugins", number]);
    });
  }

  #unknown(type: string, i: number): void {
    const known = Object.keys(LLM_D_PLUGINS).join(", ");
    this.problems.push({
      path: ["plugins", i, "type"],
      message: `expected one of ${known}, got the unsupported ${type}`,
    });
  }

  #take(declared: Declared, weight: number | undefined, path: Path, declaredAt: Path): void {
    const known = Object.hasOwn(LLM_D_PLUGINS, declared.type) ? LLM_D_PLUGINS[declared.type] : undefined;
    if (known === undefined) return;
    const plugin = { plugin: known.plugin, parameters: this.#parameters(known, declared, declaredAt) };
    if (known.kind === "scorer") {
      if (weight !== undefined && !(weight > 0)) {
        this.problems.push({ path: [...path, "weight"], message: `expected a number above 0, got ${shown(weight)}` });
      } else this.#scorers.push({ ...plugin, weight: weight ?? 1 });
    } else if (known.kind === "filter") this.#filters.push(plugin);
    else if (this.#pickers.push(plugin) > 1) {
      this.problems.push({ path, message: `expected one picker, got ${declared.type} beside another` });
    }
  }

  #parameters(known: LlmDPlugin, { parameters }: Declared, declaredAt: Path): Record<string, ParameterValue> {
    const { names, fixed = {}, only = {}, silent = [] } = known;
    const ours: Record<string, ParameterValue> = { ...fixed };
    for (const [key, value] of Object.entries(parameters)) {
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
