import {
  type DisaggregationSpec,
  HANDOFFS,
  type ParameterValue,
  type PluginSpec,
  type ProfileSpec,
  type RolesSpec,
  type ScorerSpec,
  type StageSpec,
  UNLABELLED,
} from "#core/plugin/spec.ts";
import { expected } from "./format-error.ts";
import { jsonNumber as numberText } from "./number.ts";
import { type FieldType, integer, listOf, mapOf, number, oneOf, optional, pathOf, text } from "./field-type.ts";
import { record } from "./record-type.ts";

const parameter: FieldType<ParameterValue> = {
  write: (value) => (typeof value === "number" ? numberText(value) : JSON.stringify(value)),
  read(value, parent, key) {
    if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
    throw expected(pathOf(parent, key), "a number, a string, or true or false", value);
  },
};

const plugin = record<PluginSpec>({ plugin: text, parameters: mapOf(parameter) });
const scorer = record<ScorerSpec>({ plugin: text, parameters: mapOf(parameter), weight: number });
const stage = { filters: listOf(plugin), scorers: listOf(scorer), picker: plugin };

const roles = record<RolesSpec>({
  label: text,
  prefill: listOf(text),
  decode: listOf(text),
  unlabelled: oneOf(UNLABELLED),
  pairLabel: text,
});

const disaggregation = record<DisaggregationSpec>({
  prefill: record<StageSpec>(stage),
  colocateBelowTokens: integer(0),
  promptTokensMin: integer(0),
  handoff: oneOf(HANDOFFS),
  roles,
});

/** A profile's shape. Whether its names exist is for the catalog of the core that replays it to say. */
export const profile = record<ProfileSpec>({ ...stage, disaggregation: optional(disaggregation) });
export const profiles: FieldType<Readonly<Record<string, ProfileSpec>>> = mapOf(profile);
