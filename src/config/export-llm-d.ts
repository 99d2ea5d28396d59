import { CATALOG } from "#core/profile/catalog.ts";
import { divisionOf } from "#core/profile/profile-stages.ts";
import { type ParameterTable, resolveParameters, shown } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec, ProfileSpec, ChooserSpec } from "#core/plugin/spec.ts";
import { writeHandlers } from "./llm-d-phases.ts";
import { LLM_D_PLUGINS, type LlmDPlugin } from "./llm-d-plugins.ts";

/** A profile as another project's router takes it, or why that cannot express it. */
export type Exported<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reasons: readonly string[] };

/** An EndpointPickerConfig as llm-d-router reads it. */
export interface EndpointPickerConfig {
  readonly apiVersion: "llm-d.ai/v1alpha1";
  readonly kind: "EndpointPickerConfig";
  readonly plugins: readonly DeclaredPlugin[];
  readonly schedulingProfiles: readonly SchedulingProfile[];
}

interface DeclaredPlugin {
  readonly name?: string;
  readonly type: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
}

interface SchedulingProfile {
  readonly name: string;
  readonly plugins: readonly { readonly pluginRef: string; readonly weight?: number }[];
}

type Kind = LlmDPlugin["kind"];

/** Producers of what a plugin reads that llm-d-router does not make by itself where a configuration leaves them out. */
const PRODUCERS: Readonly<Record<string, string>> = { "token-load-scorer": "inflight-load-producer" };

/**
 * The profile as an EndpointPickerConfig, which llmDProfile reads back to one that decides the same. Every parameter is
 * stated, so that other defaults change nothing.
 */
export function exportLlmD(spec: ProfileSpec): Exported<EndpointPickerConfig> {
  const writing = new Writing();
  const division = divisionOf(spec);
  if (division === undefined) {
    writing.declare({ type: "single-profile-handler" });
    writing.chooser("default", spec, []);
  } else {
    writeHandlers(writing, division);
    writing.chooser("decode", spec, ["decode-filter"]);
    writing.chooser("prefill", division.prefill, ["prefill-filter"]);
  }
  return writing.done();
}

class Writing {
  readonly #plugins: DeclaredPlugin[] = [];
  readonly #profiles: SchedulingProfile[] = [];
  readonly #reasons: string[] = [];

  refuse(reason: string): void {
    this.#reasons.push(reason);
  }

  /** The name to refer to it by; one that is declared already, with the same parameters, is referred to again. */
  declare(plugin: DeclaredPlugin): string {
    const same = this.#plugins.find(
      ({ type, parameters }) =>
        type === plugin.type && JSON.stringify(parameters ?? {}) === JSON.stringify(plugin.parameters ?? {}),
    );
    if (same !== undefined) return same.name ?? same.type;
    const others = this.#plugins.filter(({ type }) => type === plugin.type).length;
    const name = others === 0 ? plugin.type : `${plugin.type}-${others + 1}`;
    this.#plugins.push(others === 0 ? plugin : { name, ...plugin });
    return name;
  }

  /** One scheduling profile; `roles` are the filters that stand for its phase. */
  chooser(name: string, { filters, scorers, picker }: ChooserSpec, roles: readonly string[]): void {
    const refs: { pluginRef: string; weight?: number }[] = roles.map((type) => ({
      pluginRef: this.declare({ type }),
    }));
    for (const [i, one] of filters.entries()) this.#refer(refs, "filter", one, `${name}.filters[${i}]`);
    for (const [i, one] of scorers.entries()) this.#refer(refs, "scorer", one, `${name}.scorers[${i}]`, one.weight);
    this.#refer(refs, "picker", picker, `${name}.picker`);
    this.#profiles.push({ name, plugins: refs });
  }

  done(): Exported<EndpointPickerConfig> {
    if (this.#reasons.length > 0) return { ok: false, reasons: this.#reasons };
    return {
      ok: true,
      value: {
        apiVersion: "llm-d.ai/v1alpha1",
        kind: "EndpointPickerConfig",
        plugins: this.#plugins,
        schedulingProfiles: this.#profiles,
      },
    };
  }

  #refer(
    refs: { pluginRef: string; weight?: number }[],
    kind: Kind,
    plugin: PluginSpec,
    path: string,
    weight?: number,
  ): void {
    const declared = declaredAs(kind, plugin);
    if (typeof declared === "string") return this.refuse(`${path}: ${declared}`);
    const producer = PRODUCERS[declared.type];
    if (producer !== undefined) this.declare({ type: producer });
    refs.push({ pluginRef: this.declare(declared), ...(weight !== undefined && { weight }) });
  }
}

/** The plugin under llm-d's names; why not, where llm-d has none like it. */
function declaredAs(kind: Kind, plugin: PluginSpec): DeclaredPlugin | string {
  const ours = resolveParameters(tableOf(kind, plugin.plugin), plugin.parameters);
  const types = Object.entries(LLM_D_PLUGINS).filter(([, one]) => one.kind === kind && one.plugin === plugin.plugin);
  if (types.length === 0) return `llm-d has no ${kind} like ${plugin.plugin}`;
  // A type that has more by nature comes first: a role's filter before one by any label.
  types.sort(([, a], [, b]) => Object.keys(b.fixed ?? {}).length - Object.keys(a.fixed ?? {}).length);
  const reasons = types.map(([type, one]) => differing(type, one, ours, tableOf(kind, plugin.plugin)));
  const found = types[reasons.indexOf(undefined)];
  if (found === undefined) return reasons.at(-1)!;
  const [type, one] = found;
  const parameters = nested([...Object.entries(one.only ?? {}), ...namedParameters(one, ours)]);
  return { type, ...(Object.keys(parameters).length > 0 && { parameters }) };
}

/** A parameter that the type cannot be given; undefined where there is none. */
function differing(
  type: string,
  { names, fixed = {} }: LlmDPlugin,
  ours: Readonly<Record<string, ParameterValue>>,
  table: ParameterTable,
): string | undefined {
  const given = new Set(Object.values(names));
  for (const [name, value] of Object.entries(ours)) {
    if (given.has(name)) continue;
    const needed = fixed[name] ?? table[name]!.default;
    if (value !== needed) return `${name} ${shown(value)}: llm-d's ${type} has ${shown(needed)} alone`;
  }
  return undefined;
}

function namedParameters(
  { names }: LlmDPlugin,
  ours: Readonly<Record<string, ParameterValue>>,
): [path: string, value: unknown][] {
  return Object.entries(names).map(([theirs, name]) => [theirs, valueFor(theirs, ours[name]!)]);
}

/** Lists are texts with commas here. */
function valueFor(theirs: string, value: ParameterValue): unknown {
  if (theirs !== "validValues") return value;
  return String(value)
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

/** `a.b` becomes a mapping a with b. */
function nested(entries: readonly (readonly [path: string, value: unknown])[]): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const [path, value] of entries) {
    const [head = "", ...rest] = path.split(".");
    if (rest.length === 0) all[head] = value;
    else all[head] = { ...(all[head] as object | undefined), ...nested([[rest.join("."), value]]) };
  }
  return all;
}

function tableOf(kind: Kind, plugin: string): ParameterTable {
  const tables: Readonly<Record<Kind, Readonly<Record<string, { readonly parameters: ParameterTable }>>>> = {
    filter: CATALOG.filters,
    scorer: CATALOG.scorers,
    picker: CATALOG.pickers,
  };
  return tables[kind][plugin]!.parameters;
}
