import { type ParameterProblem, shown } from "../plugin/parameter.ts";
import { checkChoice, isMapping, unknownKeys } from "../plugin/shape.ts";
import {
  type DisaggregationSpec,
  HANDOFFS,
  type PartialStage,
  type RolesSpec,
  type StageSpec,
  UNLABELLED,
} from "../plugin/spec.ts";
import { COLOCATE_BELOW_TOKENS } from "./colocate.ts";
import { ROLES_DEFAULT } from "./roles.ts";

type CheckStage = (spec: Record<string, unknown>, path: string) => ParameterProblem[];

/** What is wrong with what a profile states of prompts that are computed elsewhere. */
export function checkDivision(value: unknown, path: string, checkStage: CheckStage): ParameterProblem[] {
  if (!isMapping(value)) return [{ path, message: `expected a mapping with prefill, got ${shown(value)}` }];
  const known = ["prefill", "colocateBelowTokens", "promptTokensMin", "handoff", "roles"];
  const problems = unknownKeys(value, known, path);
  const { prefill, handoff, roles } = value;
  if (isMapping(prefill)) problems.push(...checkStage(prefill, `${path}.prefill.`));
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
  if (!isMapping(value)) return [{ path, message: `expected a mapping, got ${shown(value)}` }];
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

/** What a checked profile states of it, with what may be left out left out. */
export interface PartialDivision extends Partial<Omit<DisaggregationSpec, "prefill" | "roles">> {
  readonly prefill: PartialStage;
  readonly roles?: Partial<RolesSpec> | undefined;
}

export function completeDivision(
  {
    prefill,
    colocateBelowTokens = COLOCATE_BELOW_TOKENS,
    promptTokensMin = 0,
    handoff = "prefill-first",
    roles,
  }: PartialDivision,
  completeStage: (stage: PartialStage) => StageSpec,
): DisaggregationSpec {
  return {
    prefill: completeStage(prefill),
    colocateBelowTokens,
    promptTokensMin,
    handoff,
    roles: { ...ROLES_DEFAULT, ...roles },
  };
}

/** In words; `stageText` is that of the stage for prompts. */
export function divisionText(
  { colocateBelowTokens, promptTokensMin, handoff, roles }: DisaggregationSpec,
  stageText: string,
): string {
  const pair = roles.pairLabel === "" ? "" : `; both have the same ${roles.pairLabel}`;
  return (
    `  a prompt of at least ${promptTokensMin} tokens, ${colocateBelowTokens} of them or more not cached where it is ` +
    `answered, is computed elsewhere (${handoff})\n` +
    `      by the label ${roles.label}: ${roles.prefill.join(", ")} compute, ${roles.decode.join(", ")} answer, those ` +
    `without it: ${roles.unlabelled}${pair}\n${stageText}`
  );
}
