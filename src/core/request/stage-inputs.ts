import { CASCADE_STEPS, type CascadeInput, type RequestEscalated } from "./cascade-input.ts";
import { CONTINUED_STEPS, type RequestContinued } from "./continued-input.ts";
import { HEDGE_STEPS, type HedgeInput, type RequestHedged } from "./hedge-input.ts";
import type { StageStep } from "./stage-step.ts";

/** Inputs about requests that stages of their paths give, each stage's own. */
export type StageInput = HedgeInput | CascadeInput | RequestContinued;
/** Those that a decision answers. */
export type StageAsking = RequestHedged | RequestEscalated | RequestContinued;
/** Those after which a second endpoint stands by. */
export type StandbyAsking = RequestHedged;

export const STAGE_ASKING: readonly StageAsking["kind"][] = [
  "request-hedged",
  "request-escalated",
  "request-continued",
];

const ASKING: ReadonlySet<string> = new Set(STAGE_ASKING);
const STEPS = new Map<string, (input: never) => StageStep>(
  Object.entries({ ...HEDGE_STEPS, ...CASCADE_STEPS, ...CONTINUED_STEPS }),
);

export function isStageInput(input: { readonly kind: string }): input is StageInput {
  return STEPS.has(input.kind);
}

export function isStageAsking(input: { readonly kind: string }): input is StageAsking {
  return ASKING.has(input.kind);
}

export function asksForStandby(input: { readonly kind: string }): input is StandbyAsking {
  return input.kind === "request-hedged";
}

/** What an input of a stage means for where its request is. */
export function stepOf(input: StageInput): StageStep {
  return STEPS.get(input.kind)!(input as never);
}
