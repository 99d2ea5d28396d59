import { checkDivision, completeDivision, divisionText, type PartialDivision } from "../prefill/divided-profile.ts";
import { Roles } from "../prefill/roles.ts";
import type { ParameterProblem } from "../plugin/parameter.ts";
import type { Signal } from "../plugin/plugin.ts";
import type { DisaggregationSpec, PartialStage, ProfileSpec, StageSpec } from "../plugin/spec.ts";
import type { Profile } from "./profile.ts";

/** How a profile shares requests between an endpoint that computes the prompt and one that answers. */
export interface PrefillStages {
  readonly spec: DisaggregationSpec;
  readonly roles: Roles;
  /** Chooses who computes the prompt. */
  readonly prefill: Profile;
}

/** What a profile may state beside the choice of who answers; what it leaves out is left out here too. */
export interface PartialParts {
  readonly disaggregation?: PartialDivision | undefined;
}

export function isPart(key: string): boolean {
  return key === "disaggregation";
}

/** Keys of the parts that it has. */
export function partsOf(spec: ProfileSpec): readonly string[] {
  return divisionOf(spec) === undefined ? [] : ["disaggregation"];
}

export function checkParts(
  { disaggregation }: Record<string, unknown>,
  checkStage: Parameters<typeof checkDivision>[2],
): ParameterProblem[] {
  return disaggregation === undefined ? [] : checkDivision(disaggregation, "disaggregation", checkStage);
}

export function completeParts(
  { disaggregation }: PartialParts,
  completeStage: (stage: PartialStage) => StageSpec,
): Pick<ProfileSpec, "disaggregation"> {
  return disaggregation === undefined ? {} : { disaggregation: completeDivision(disaggregation, completeStage) };
}

/** What it states of prompts that are computed elsewhere; undefined where whoever answers computes them. */
export function divisionOf({ disaggregation }: ProfileSpec): DisaggregationSpec | undefined {
  return disaggregation;
}

/** The same policy with this in its place. */
export function divided({ disaggregation: _before, ...stage }: ProfileSpec, by: PartialDivision | undefined) {
  return { ...stage, ...(by && { disaggregation: completeDivision(by, (one) => one as StageSpec) }) };
}

/** With the profile that chooses who computes the prompt. */
export function prefillStages(spec: DisaggregationSpec, prefill: Profile): PrefillStages {
  return { spec, roles: new Roles(spec.roles), prefill };
}

/** All choices that it makes of a request, the one of who answers first. */
export function stagesOf(spec: ProfileSpec): readonly StageSpec[] {
  const { disaggregation } = spec;
  return disaggregation === undefined ? [spec] : [spec, disaggregation.prefill];
}

/** What its parts read beside what their stages do: whether a prompt is shared follows from what is cached. */
export function signalsOfParts({ disaggregation }: ProfileSpec): readonly Signal[] {
  return disaggregation === undefined ? [] : ["labels", "prefix-index"];
}

/** Its parts in words. */
export function partsText({ disaggregation }: ProfileSpec, stageText: (stage: StageSpec) => string): string {
  return disaggregation === undefined ? "" : divisionText(disaggregation, stageText(disaggregation.prefill));
}
