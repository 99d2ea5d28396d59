import { type Chooser, PromptDivision } from "../prefill/prefill-choice.ts";
import { type ParameterProblem, shown } from "../plugin/parameter.ts";
import type { Signal } from "../plugin/plugin.ts";
import { checkChoice, isMapping, unknownKeys } from "../plugin/shape.ts";
import {
  type DisaggregationSpec,
  HANDOFFS,
  type PartialChooser,
  type ProfileSpec,
  type RolesSpec,
  type ChooserSpec,
  UNLABELLED,
} from "../plugin/spec.ts";

/** Where a profile leaves colocateBelowTokens out; as Cognitora's colocate_below_tokens. */
export const COLOCATE_BELOW_TOKENS = 256;

/** Roles by label in common use, for configurations: llm-d's, whose roles may be combined. */
export const ROLES_DEFAULT: RolesSpec = {
  label: "llm-d.ai/role",
  prefill: ["prefill", "encode-prefill", "prefill-decode", "both", "encode-prefill-decode"],
  decode: ["decode", "prefill-decode", "both", "encode-prefill-decode"],
  unlabelled: "decode",
  pairLabel: "",
};

export type { PromptDivision };

/** With the profile that chooses who computes the prompt. */
export function promptDivision<Profile extends Chooser>(
  spec: DisaggregationSpec,
  prefill: Profile,
): PromptDivision<Profile> {
  return new PromptDivision(spec, prefill);
}

/** What a profile may state beside the choice of who answers; what it leaves out is left out here too. */
export interface PartialStages {
  readonly disaggregation?: PartialDivision | undefined;
}

export function isStage(key: string): boolean {
  return key === "disaggregation";
}

/** Keys of the stages that it has. */
export function stagesOf(spec: ProfileSpec): readonly string[] {
  return divisionOf(spec) === undefined ? [] : ["disaggregation"];
}

export function checkStages(
  { disaggregation }: Record<string, unknown>,
  checkChooser: CheckChooser,
): ParameterProblem[] {
  return disaggregation === undefined ? [] : checkDivision(disaggregation, "disaggregation", checkChooser);
}

export function completeStages(
  { disaggregation }: PartialStages,
  completeChooser: (chooser: PartialChooser) => ChooserSpec,
): Pick<ProfileSpec, "disaggregation"> {
  return disaggregation === undefined ? {} : { disaggregation: completeDivision(disaggregation, completeChooser) };
}

/** What it states of prompts that are computed elsewhere; undefined where whoever answers computes them. */
export function divisionOf({ disaggregation }: ProfileSpec): DisaggregationSpec | undefined {
  return disaggregation;
}

/** The same policy with this in its place. */
export function divided({ disaggregation: _before, ...chooser }: ProfileSpec, by: PartialDivision | undefined) {
  return { ...chooser, ...(by && { disaggregation: completeDivision(by, (one) => one as ChooserSpec) }) };
}

/** All choices that it makes of a request, the one of who answers first. */
export function choosersOf(spec: ProfileSpec): readonly ChooserSpec[] {
  const { disaggregation } = spec;
  return disaggregation === undefined ? [spec] : [spec, disaggregation.prefill];
}

/** What its stages read beside what their choosers do: whether a prompt is shared follows from what is cached. */
export function signalsOfStages({ disaggregation }: ProfileSpec): readonly Signal[] {
  return disaggregation === undefined ? [] : ["labels", "prefix-index"];
}

/** Its stages in words. */
export function stagesText({ disaggregation }: ProfileSpec, chooserText: (chooser: ChooserSpec) => string): string {
  return disaggregation === undefined ? "" : divisionText(disaggregation, chooserText(disaggregation.prefill));
}

type CheckChooser = (spec: Record<string, unknown>, path: string) => ParameterProblem[];

/** What is wrong with what a profile states of prompts that are computed elsewhere. */
function checkDivision(value: unknown, path: string, checkChooser: CheckChooser): ParameterProblem[] {
  if (!isMapping(value)) return [{ path, message: `expected a mapping with prefill, got ${shown(value)}` }];
  const known = ["prefill", "colocateBelowTokens", "promptTokensMin", "handoff", "roles"];
  const problems = unknownKeys(value, known, path);
  const { prefill, handoff, roles } = value;
  if (isMapping(prefill)) problems.push(...checkChooser(prefill, `${path}.prefill.`));
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
  readonly prefill: PartialChooser;
  readonly roles?: Partial<RolesSpec> | undefined;
}

function completeDivision(
  {
    prefill,
    colocateBelowTokens = COLOCATE_BELOW_TOKENS,
    promptTokensMin = 0,
    handoff = "prefill-first",
    roles,
  }: PartialDivision,
  completeChooser: (chooser: PartialChooser) => ChooserSpec,
): DisaggregationSpec {
  return {
    prefill: completeChooser(prefill),
    colocateBelowTokens,
    promptTokensMin,
    handoff,
    roles: { ...ROLES_DEFAULT, ...roles },
  };
}

/** In words; `chooserText` is that of what chooses for prompts. */
function divisionText(
  { colocateBelowTokens, promptTokensMin, handoff, roles }: DisaggregationSpec,
  chooserText: string,
): string {
  const pair = roles.pairLabel === "" ? "" : `; both have the same ${roles.pairLabel}`;
  return (
    `  a prompt of at least ${promptTokensMin} tokens, ${colocateBelowTokens} of them or more not cached where it is ` +
    `answered, is computed elsewhere (${handoff})\n` +
    `      by the label ${roles.label}: ${roles.prefill.join(", ")} compute, ${roles.decode.join(", ")} answer, those ` +
    `without it: ${roles.unlabelled}${pair}\n${chooserText}`
  );
}
