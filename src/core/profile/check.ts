import { CATALOG } from "../catalog.ts";
import { type ParameterTable, type Problem, checkParameters, shown } from "../plugin/parameter.ts";
import type { PluginSpec, ProfileSpec } from "../plugin/spec.ts";

/** What is wrong with a profile, each with its path; empty when it can be built. Takes anything a file may hold. */
export function checkProfile(spec: unknown): Problem[] {
  if (!isRecord(spec))
    return [{ path: "", message: `expected a mapping with filters, scorers, picker, got ${shown(spec)}` }];
  const problems = unknownKeys(spec, ["filters", "scorers", "picker"], "");
  problems.push(...checkList(spec["filters"] ?? [], CATALOG.filters, "filters", []));
  problems.push(...checkList(spec["scorers"] ?? [], CATALOG.scorers, "scorers", ["weight"]));
  problems.push(...checkScorers(spec["scorers"]));
  problems.push(...checkPlugin(spec["picker"], CATALOG.pickers, "picker", []));
  const scorers = spec["scorers"];
  const picker = spec["picker"];
  if (problems.length === 0 && (!Array.isArray(scorers) || scorers.length === 0) && followsTotals(picker)) {
    problems.push({ path: "scorers", message: `expected at least one scorer, since the picker follows their totals` });
  }
  return problems;
}

type PluginTable = Readonly<Record<string, { readonly parameters: ParameterTable }>>;

function checkList(value: unknown, table: PluginTable, path: string, extraKeys: readonly string[]): Problem[] {
  if (!Array.isArray(value)) return [{ path, message: `expected a list, got ${shown(value)}` }];
  return value.flatMap((entry: unknown, i) => checkPlugin(entry, table, `${path}[${i}]`, extraKeys));
}

/** A filter may stand twice with other parameters; a scorer that does would only hide its weight. */
function checkScorers(value: unknown): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<unknown>();
  (Array.isArray(value) ? value : []).forEach((entry: unknown, i) => {
    if (!isRecord(entry)) return;
    const { plugin, weight } = entry;
    if (seen.has(plugin)) problems.push({ path: `scorers[${i}].plugin`, message: `${shown(plugin)} is there twice` });
    seen.add(plugin);
    if (typeof weight === "number" && Number.isFinite(weight) && weight > 0) return;
    problems.push({ path: `scorers[${i}].weight`, message: `expected a number above 0, got ${shown(weight)}` });
  });
  return problems;
}

function checkPlugin(value: unknown, table: PluginTable, path: string, extraKeys: readonly string[]): Problem[] {
  const accepted = Object.keys(table).join(", ");
  if (!isRecord(value)) return [{ path, message: `expected a mapping with plugin (${accepted}), got ${shown(value)}` }];
  const problems = unknownKeys(value, ["plugin", "parameters", ...extraKeys], path);
  const name = value["plugin"];
  const plugin = typeof name === "string" && Object.hasOwn(table, name) ? table[name] : undefined;
  if (plugin === undefined) {
    problems.push({ path: `${path}.plugin`, message: `expected one of ${accepted}, got ${shown(name)}` });
    return problems;
  }
  const parameters = value["parameters"] ?? {};
  if (!isRecord(parameters)) {
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

function unknownKeys(value: Record<string, unknown>, known: readonly string[], path: string): Problem[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: path === "" ? key : `${path}.${key}`, message: `unknown; accepted: ${known.join(", ")}` }));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fills in what a checked profile left out. */
export function completeProfile(spec: Partial<ProfileSpec> & Pick<ProfileSpec, "picker">): ProfileSpec {
  const plugin = <T extends PluginSpec>(entry: T): T => ({ ...entry, parameters: entry.parameters ?? {} });
  return {
    filters: (spec.filters ?? []).map(plugin),
    scorers: (spec.scorers ?? []).map(plugin),
    picker: plugin(spec.picker),
  };
}
