import {
  type ParameterValue,
  type PluginSpec,
  type ProfileSpec,
  type ScorerSpec,
  type ChooserSpec,
} from "#core/plugin/spec.ts";
import { expected } from "./format-error.ts";
import { type FieldType, listOf, mapOf, number, pathOf, text } from "./field-type.ts";
import { record } from "./record-type.ts";
import { profileParts } from "./stage-table.ts";

const parameter: FieldType<ParameterValue> = {
  write: (value, to) => (typeof value === "number" ? to.number(value) : to.json(JSON.stringify(value))),
  read(value, parent, key) {
    if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
    throw expected(pathOf(parent, key), "a number, a string, or true or false", value);
  },
};

const plugin = record<PluginSpec>({ plugin: text, parameters: mapOf(parameter) });
const scorer = record<ScorerSpec>({ plugin: text, parameters: mapOf(parameter), weight: number });
const chooser = { filters: listOf(plugin), scorers: listOf(scorer), picker: plugin };

/** A profile's shape. Whether its names exist is for the catalog of the core that replays it to say. */
export const profile = record<ProfileSpec>({ ...chooser, ...profileParts(record<ChooserSpec>(chooser)) });
export const profiles: FieldType<Readonly<Record<string, ProfileSpec>>> = mapOf(profile);
