import { assert } from "../base/assert.ts";
import { CATALOG } from "./catalog.ts";
import type { Plugin, Signal } from "../plugin/plugin.ts";
import type { PluginSpec, ProfileSpec, ChooserSpec } from "../plugin/spec.ts";
import { divisionOf, type PromptDivision, promptDivision, signalsOfStages, choosersOf } from "./profile-stages.ts";
import { Profile, prefillProfileName } from "./profile.ts";

/** A profile and the spec that it was built of. */
export interface BuiltProfile {
  readonly spec: ProfileSpec;
  readonly profile: Profile;
}

/**
 * A profile of the catalog's plugins; the spec was checked. `keepsBreakdowns` as Profile takes it. Plugins that are in
 * `before` with the same parameters are taken from there, with all that they learned; it must not be used any more.
 */
export function buildProfile(name: string, spec: ProfileSpec, keepsBreakdowns = true, before?: BuiltProfile): Profile {
  const division = buildDivision(name, spec, keepsBreakdowns, before);
  return buildChooser(name, spec, keepsBreakdowns, before, division);
}

function buildDivision(
  name: string,
  profile: ProfileSpec,
  keepsBreakdowns: boolean,
  before: BuiltProfile | undefined,
): PromptDivision<Profile> | undefined {
  const spec = divisionOf(profile);
  if (spec === undefined) return undefined;
  const division = before?.profile.division;
  const same = division && { spec: division.spec.prefill, profile: division.prefill };
  const prefill = buildChooser(prefillProfileName(name), spec.prefill, keepsBreakdowns, same);
  return promptDivision(spec, prefill);
}

function buildChooser(
  name: string,
  spec: ChooserSpec,
  keepsBreakdowns: boolean,
  before?: { readonly spec: ChooserSpec; readonly profile: Profile },
  division?: PromptDivision<Profile>,
): Profile {
  const filters = new Kept(before?.spec.filters ?? [], before?.profile.plugins.filters ?? []);
  const scorers = new Kept(before?.spec.scorers ?? [], before?.profile.plugins.scorers ?? []);
  const pickers = new Kept(before ? [before.spec.picker] : [], before ? [before.profile.plugins.picker] : []);
  const plugins = {
    filters: spec.filters.map((one) => filters.take(one) ?? created(CATALOG.filters, one)),
    scorers: spec.scorers.map((one) => ({
      scorer: scorers.take(one)?.scorer ?? created(CATALOG.scorers, one),
      weight: one.weight,
    })),
    picker: pickers.take(spec.picker) ?? created(CATALOG.pickers, spec.picker),
  };
  return new Profile(name, plugins, keepsBreakdowns, division);
}

/** Plugins that may be taken over, each once. */
class Kept<T> {
  readonly #left = new Map<string, T[]>();

  constructor(specs: readonly PluginSpec[], plugins: readonly T[]) {
    specs.forEach((spec, i) => {
      const identity = identityOf(spec);
      const same = this.#left.get(identity);
      if (same === undefined) this.#left.set(identity, [plugins[i]!]);
      else same.push(plugins[i]!);
    });
  }

  take(spec: PluginSpec): T | undefined {
    return this.#left.get(identityOf(spec))?.shift();
  }
}

/** Equal for the same plugin with the same parameters, in whatever order they were written. */
function identityOf({ plugin, parameters }: PluginSpec): string {
  return JSON.stringify([plugin, Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))]);
}

/** Signals that a profile's plugins read; the spec was checked. */
export function signalsOf(spec: ProfileSpec): ReadonlySet<Signal> {
  return new Set([...choosersOf(spec).flatMap(signalsOfChooser), ...signalsOfStages(spec)]);
}

function signalsOfChooser({ filters, scorers, picker }: ChooserSpec): Signal[] {
  return [
    ...filters.flatMap((one) => read(CATALOG.filters, one)),
    ...scorers.flatMap((one) => read(CATALOG.scorers, one)),
    ...read(CATALOG.pickers, picker),
  ];
}

function read<T>(table: Readonly<Record<string, Plugin<T>>>, { plugin, parameters }: PluginSpec): readonly Signal[] {
  return entry(table, plugin).readsWith(parameters);
}

function created<T>(table: Readonly<Record<string, Plugin<T>>>, { plugin, parameters }: PluginSpec): T {
  return entry(table, plugin).create(plugin, parameters);
}

function entry<T>(table: Readonly<Record<string, Plugin<T>>>, name: string): Plugin<T> {
  const plugin = Object.hasOwn(table, name) ? table[name] : undefined;
  assert(plugin !== undefined, `the profile was checked: ${name} is in the catalog`);
  return plugin;
}
