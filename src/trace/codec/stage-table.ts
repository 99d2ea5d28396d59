import { FAULTS } from "#core/endpoint/fault.ts";
import { type CascadeInput, KEPT_REASONS } from "#core/request/cascade-input.ts";
import type { RequestContinued } from "#core/request/continued-input.ts";
import type { HedgeInput, HedgeSettled } from "#core/request/hedge-input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { StageInput } from "#core/request/stage-inputs.ts";
import type { StandbyWinner } from "#core/request/stage-step.ts";
import { type DisaggregationSpec, HANDOFFS, type RolesSpec, type ChooserSpec, UNLABELLED } from "#core/plugin/spec.ts";
import { hashes } from "./chain-table.ts";
import { as, type FieldType, flag, integer, listOf, number, oneOf, optional, text } from "./field-type.ts";
import { record, type TablesByKind } from "./record-type.ts";

type Body<I> = I extends unknown ? Omit<I, "at"> : never;
type Tables<I extends StageInput> = TablesByKind<Body<I>, "kind">;

const WINNERS: readonly StandbyWinner[] = ["first", "second"];
const requestId = text;
const judged = { requestId, meanLogprob: number, tokens: integer(0) };

const hedging: Tables<HedgeInput> = {
  "request-hedged": record({ requestId }),
  "hedge-settled": record<Omit<HedgeSettled, "kind" | "at">>({
    requestId,
    winner: oneOf(WINNERS),
    fault: optional(oneOf(FAULTS)),
  }),
};

const cascade = (request: FieldType<RouteRequest>): Tables<CascadeInput> => ({
  "request-escalated": record({ ...judged, request }),
  "answer-judged": record({ ...judged, kept: oneOf(KEPT_REASONS) }),
});

const continuation: Tables<RequestContinued> = {
  "request-continued": record<Omit<RequestContinued, "kind" | "at">>({
    requestId,
    fault: oneOf(FAULTS),
    outputTokens: integer(0),
    answerHashes: optional(as("answerLanes", hashes)),
    byText: flag,
  }),
};

/** Inputs of stages. */
export const stageInputs = (request: FieldType<RouteRequest>): Tables<StageInput> => ({
  ...hedging,
  ...cascade(request),
  ...continuation,
});

/** What a decision states of a prompt that is computed elsewhere, beside what it states of any endpoint. */
export const prefillTerms = { handoff: oneOf(HANDOFFS) };

const roles = record<RolesSpec>({
  label: text,
  prefill: listOf(text),
  decode: listOf(text),
  unlabelled: oneOf(UNLABELLED),
  pairLabel: text,
});

/** What a profile may state beside its own chooser. */
export const profileParts = (chooser: FieldType<ChooserSpec>) => ({
  disaggregation: optional(
    record<DisaggregationSpec>({
      prefill: chooser,
      colocateBelowTokens: integer(0),
      promptTokensMin: integer(0),
      ...prefillTerms,
      roles,
    }),
  ),
});
