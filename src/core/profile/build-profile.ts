import { assert } from "../assert.ts";
import { CATALOG } from "../catalog.ts";
import type { Plugin, Signal } from "../plugin/plugin.ts";
import type { PluginSpec, ProfileSpec } from "../plugin/spec.ts";
import { Profile } from "./profile.ts";

/** A profile of the catalog's plugins; the spec was checked. `keepsBreakdowns` as Profile takes it. */
export function buildProfile(name: string, spec: ProfileSpec, keepsBreakdowns = true): Profile {
  const plugins = {
    filters: spec.filters.map((filter) => created(CATALOG.filters, filter)),
    scorers: spec.scorers.map((one) => ({ scorer: created(CATALOG.scorers, one), weight: one.weight })),
    picker: created(CATALOG.pickers, spec.picker),
  };
  return new Profile(name, plugins, keepsBreakdowns);
}

/** Signals that a profile's plugins read; the spec was checked. */
export function signalsOf(spec: ProfileSpec): ReadonlySet<Signal> {
  return new Set([
    ...spec.filters.flatMap((one) => read(CATALOG.filters, one)),
    ...spec.scorers.flatMap((one) => read(CATALOG.scorers, one)),
    ...read(CATALOG.pickers, spec.picker),
  ]);
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
