import { CATALOG } from "./catalog.ts";
import { type ParameterTable, type ParameterProblem, checkParameters, shown } from "../plugin/parameter.ts";
import { COLOCATE_BELOW_TOKENS } from "../disaggregation/colocate.ts";
import { ROLES_DEFAULT } from "../disaggregation/roles.ts";
import {
  type DisaggregationSpec,
  HANDOFFS,
  type PluginSpec,
  type ProfileSpec,
  type RolesSpec,
  type ScorerSpec,
  type StageSpec,
  UNLABELLED,
} from "../plugin/spec.ts";

/** What is wrong with a profile, each with its path; empty when it can be built. Takes anything a file may hold. */
export function checkProfile(spec: unknown): ParameterProblem[] {
  if (!isRecord(spec))
    return [{ path: "", message: `expected a mapping with filters, scorers, picker, got ${shown(spec)}` }];
  const { disaggregation, ...stage } = spec;
  return [
    ...checkStage(stage, ""),
    ...(disaggregation === undefined ? [] : checkDisaggregation(disaggregation, "disaggregation")),
  ];
}

/** `path` ends in a point, or is empty. */
function checkStage(spec: Record<string, unknown>, path: string): ParameterProblem[] {
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

function checkDisaggregation(value: unknown, path: string): ParameterProblem[] {
  if (!isRecord(value)) return [{ path, message: `expected a mapping with prefill, got ${shown(value)}` }];
  const known = ["prefill", "colocateBelowTokens", "promptTokensMin", "handoff", "roles"];
  const problems = unknownKeys(value, known, path);
  const { prefill, handoff, roles } = value;
  if (isRecord(prefill)) problems.push(...checkStage(prefill, `${path}.prefill.`));
  else
    problems.push({
      path: `${path}.prefill`,
      message: `expected a mapping with filters, scorers, picker, got ${shown(prefill)}`,
    });
  for (const key of ["colocateBelowTokens", "promptTokensMin"]) {
    const tokens = value[key] ?? 0;
    if (typeof tokens === "number" && Number.isSafeInteger(tokens) && tokens >= 0) continue;
    problems.push({ path: `${path}.${key}`, message: `expected an integer of at least 0, got ${shown(tokens)}` });
  }
  if (handoff !== undefined) problems.push(...checkChoice(handoff, HANDOFFS, `${path}.handoff`));
  return roles === undefined ? problems : [...problems, ...checkRoles(roles, `${path}.roles`)];
}

function checkRoles(value: unknown, path: string): ParameterProblem[] {
  if (!isRecord(value)) return [{ path, message: `expected a mapping, got ${shown(value)}` }];
  const problems = unknownKeys(value, Object.keys(ROLES_DEFAULT), path);
  for (const key of ["label", "pairLabel"]) {
    const text = value[key] ?? "";
    if (typeof text !== "string")
      problems.push({ path: `${path}.${key}`, message: `expected text, got ${shown(text)}` });
  }
  for (const key of ["prefill", "decode"]) {
    const values: unknown = value[key] ?? [];
    if (Array.isArray(values) && values.every((one) => typeof one === "string")) continue;
    problems.push({ path: `${path}.${key}`, message: `expected a list of the label's values, got ${shown(values)}` });
  }
  const { unlabelled } = value;
  return unlabelled === undefined
    ? problems
    : [...problems, ...checkChoice(unlabelled, UNLABELLED, `${path}.unlabelled`)];
}

function checkChoice(value: unknown, accepted: readonly string[], path: string): ParameterProblem[] {
  if (typeof value === "string" && accepted.includes(value)) return [];
  return [{ path, message: `expected one of ${accepted.join(", ")}, got ${shown(value)}` }];
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
    if (!isRecord(entry)) return;
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

function unknownKeys(value: Record<string, unknown>, known: readonly string[], path: string): ParameterProblem[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: path === "" ? key : `${path}.${key}`, message: `unknown; accepted: ${known.join(", ")}` }));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fills in what a checked profile left out. */
export function completeProfile(spec: PartialProfile): ProfileSpec {
  const { disaggregation } = spec;
  if (disaggregation === undefined) return completeStage(spec);
  const {
    prefill,
    colocateBelowTokens = COLOCATE_BELOW_TOKENS,
    promptTokensMin = 0,
    handoff = "prefill-first",
    roles,
  } = disaggregation;
  return {
    ...completeStage(spec),
    disaggregation: {
      prefill: completeStage(prefill),
      colocateBelowTokens,
      promptTokensMin,
      handoff,
      roles: { ...ROLES_DEFAULT, ...roles },
    },
  };
}

/** A stage that was checked, with what may be left out left out. */
interface PartialStage {
  readonly filters?: readonly PluginSpec[] | undefined;
  readonly scorers?: readonly ScorerSpec[] | undefined;
  readonly picker: PluginSpec;
}

/** The same of a profile. */
export interface PartialProfile extends PartialStage {
  readonly disaggregation?: PartialDisaggregation | undefined;
}

interface PartialDisaggregation extends Partial<Omit<DisaggregationSpec, "prefill" | "roles">> {
  readonly prefill: PartialStage;
  readonly roles?: Partial<RolesSpec> | undefined;
}

function completeStage(spec: PartialStage): StageSpec {
  const plugin = <T extends PluginSpec>(entry: T): T => ({ ...entry, parameters: entry.parameters ?? {} });
  return {
    filters: (spec.filters ?? []).map(plugin),
    scorers: (spec.scorers ?? []).map(plugin),
    picker: plugin(spec.picker),
  };
}
