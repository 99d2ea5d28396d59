import { CATALOG } from "./catalog.ts";
import { type ParameterTable, type ParameterProblem, checkParameters, shown } from "../plugin/parameter.ts";
import type { PartialChooser, PluginSpec, ProfileSpec, ChooserSpec } from "../plugin/spec.ts";
import { isMapping, unknownKeys } from "../plugin/shape.ts";
import { checkStages, completeStages, isStage, type PartialStages } from "./profile-stages.ts";

/** What is wrong with a profile, each with its path; empty when it can be built. Takes anything a file may hold. */
export function checkProfile(spec: unknown): ParameterProblem[] {
  if (!isMapping(spec))
    return [{ path: "", message: `expected a mapping with filters, scorers, picker, got ${shown(spec)}` }];
  const chooser = Object.fromEntries(Object.entries(spec).filter(([key]) => !isStage(key)));
  return [...checkChooser(chooser, ""), ...checkStages(spec, checkChooser)];
}

/** `path` ends in a point, or is empty. */
function checkChooser(spec: Record<string, unknown>, path: string): ParameterProblem[] {
  const problems = unknownKeys(spec, ["filters", "scorers", "picker"], path.slice(0, -1));
  problems.push(...checkList(spec["filters"] ?? [], CATALOG.filters, `${path}filters`, []));
  problems.push(...checkList(spec["scorers"] ?? [], CATALOG.scorers, `${path}scorers`, ["weight"]));
  problems.push(...checkScorers(spec["scorers"], path));
  problems.push(...checkPlugin(spec["picker"], CATALOG.pickers, `${path}picker`, []));
  const scorers = spec["scorers"];
  const picker = spec["picker"];
  if (problems.length === 0 && (!Array.isArray(scorers) || scorers.length === 0) && followsTotals(picker)) {
    const message = `expected at least one scorer, since the picker follows their totals`;
    problems.push({ path: `${path}scorers`, message });
  }
  return problems;
}

type PluginTable = Readonly<Record<string, { readonly parameters: ParameterTable }>>;

function checkList(value: unknown, table: PluginTable, path: string, extraKeys: readonly string[]): ParameterProblem[] {
  if (!Array.isArray(value)) return [{ path, message: `expected a list, got ${shown(value)}` }];
  return value.flatMap((entry: unknown, i) => checkPlugin(entry, table, `${path}[${i}]`, extraKeys));
}

/** A filter may stand twice with other parameters; a scorer that does would only hide its weight. */
function checkScorers(value: unknown, path: string): ParameterProblem[] {
  const problems: ParameterProblem[] = [];
  const seen = new Set<unknown>();
  (Array.isArray(value) ? value : []).forEach((entry: unknown, i) => {
    if (!isMapping(entry)) return;
    const { plugin, weight } = entry;
    if (seen.has(plugin))
      problems.push({ path: `${path}scorers[${i}].plugin`, message: `${shown(plugin)} is there twice` });
    seen.add(plugin);
    if (typeof weight === "number" && Number.isFinite(weight) && weight > 0) return;
    problems.push({ path: `${path}scorers[${i}].weight`, message: `expected a number above 0, got ${shown(weight)}` });
  });
  return problems;
}

function checkPlugin(
  value: unknown,
  table: PluginTable,
  path: string,
  extraKeys: readonly string[],
): ParameterProblem[] {
  const accepted = Object.keys(table).join(", ");
  if (!isMapping(value))
    return [{ path, message: `expected a mapping with plugin (${accepted}), got ${shown(value)}` }];
  const problems = unknownKeys(value, ["plugin", "parameters", ...extraKeys], path);
  const name = value["plugin"];
  const plugin = typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
  if (plugin === undefined) {
    problems.push({ path: `${path}.plugin`, message: `expected one of ${accepted}, got ${shown(name)}` });
    return problems;
  }
  const parameters = value["parameters"] ?? {};
  if (!isMapping(parameters)) {
    problems.push({ path: `${path}.parameters`, message: `expected a mapping, got ${shown(parameters)}` });
    return problems;
  }
  return [...problems, ...checkParameters(plugin.parameters, parameters, `${path}.parameters`)];
}

function followsTotals(picker: unknown): boolean {
  const { plugin, parameters } = picker as PluginSpec;
  const entry = CATALOG.pickers[plugin as keyof typeof CATALOG.pickers];
  return entry.create(plugin, parameters ?? {}).followsTotals;
}

/** Fills in what a checked profile left out. */
export function completeProfile(spec: PartialProfile): ProfileSpec {
  return { ...completeChooser(spec), ...completeStages(spec, completeChooser) };
}

/** A profile that was checked, with what may be left out left out. */
export interface PartialProfile extends PartialChooser, PartialStages {}

function completeChooser(spec: PartialChooser): ChooserSpec {
  const plugin = <T extends PluginSpec>(entry: T): T => ({ ...entry, parameters: entry.parameters ?? {} });
  return {
    filters: (spec.filters ?? []).map(plugin),
    scorers: (spec.scorers ?? []).map(plugin),
    picker: plugin(spec.picker),
  };
}
