import type { ParameterTable } from "#core/plugin/parameter.ts";
import type { PluginSpec, ProfileSpec } from "#core/plugin/spec.ts";
import { CATALOG } from "#core/profile/catalog.ts";

/** What of a policy is otherwise than in the one that it is a variant of, a phrase each. */
export function specChanges(from: ProfileSpec, to: ProfileSpec): string[] {
  return [
    ...listChanges("filters", from.filters, to.filters),
    ...listChanges("scorers", from.scorers, to.scorers),
    ...weightChanges(from, to),
    ...parameterChanges("pickers", from.picker, to.picker),
  ];
}

type Kind = keyof typeof CATALOG;

function listChanges(kind: Kind, from: readonly PluginSpec[], to: readonly PluginSpec[]): string[] {
  const left = [...from];
  const changes = to.flatMap((one) => {
    const before = left.findIndex(({ plugin }) => plugin === one.plugin);
    if (before < 0) return [`with ${one.plugin}`];
    return parameterChanges(kind, left.splice(before, 1)[0]!, one);
  });
  return [...changes, ...left.map(({ plugin }) => `without ${plugin}`)];
}

function parameterChanges(kind: Kind, from: PluginSpec, to: PluginSpec): string[] {
  if (from.plugin !== to.plugin) return [`${to.plugin} in place of ${from.plugin}`];
  const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[kind];
  return Object.entries(tables[to.plugin]!.parameters).flatMap(([name, { default: usual }]) => {
    const before = from.parameters[name] ?? usual;
    const after = to.parameters[name] ?? usual;
    return before === after ? [] : [`${to.plugin}.${name} ${String(after)} (not ${String(before)})`];
  });
}

/** Weights as the first of them is 1. */
function weightChanges({ scorers: from }: ProfileSpec, { scorers: to }: ProfileSpec): string[] {
  const ratios = (list: ProfileSpec["scorers"]): string =>
    list.map(({ plugin, weight }) => `${plugin} ${Number((weight / list[0]!.weight).toPrecision(3))}`).join(", ");
  const kept = from.filter(({ plugin }) => to.some((one) => one.plugin === plugin));
  if (to.length < 2 || ratios(kept) === ratios(to)) return [];
  return [`weights ${to.map(({ plugin, weight }) => `${plugin} ${weight}`).join(", ")}`];
}
