import {
  type DisaggregationSpec,
  HANDOFFS,
  type ParameterValue,
  type PluginSpec,
  type ProfileSpec,
  type StageSpec,
  UNLABELLED,
} from "#core/plugin/spec.ts";
import { Fields, expected } from "./fields.ts";

/** Reads a profile's shape. Whether its names exist is for the catalog of the core that replays it to say. */
export function decodeProfile(fields: Fields): ProfileSpec {
  if (!fields.has("disaggregation")) return decodeStage(fields);
  return { ...decodeStage(fields), disaggregation: decodeDisaggregation(fields.object("disaggregation")) };
}

function decodeDisaggregation(fields: Fields): DisaggregationSpec {
  const roles = fields.object("roles");
  return {
    prefill: decodeStage(fields.object("prefill")),
    colocateBelowTokens: fields.integer("colocateBelowTokens", 0),
    promptTokensMin: fields.integer("promptTokensMin", 0),
    handoff: fields.oneOf("handoff", HANDOFFS),
    roles: {
      label: roles.string("label"),
      prefill: roles.strings("prefill"),
      decode: roles.strings("decode"),
      unlabelled: roles.oneOf("unlabelled", UNLABELLED),
      pairLabel: roles.string("pairLabel"),
    },
  };
}

function decodeStage(fields: Fields): StageSpec {
  const filters = fields
    .list("filters")
    .map((entry, i) => decodePlugin(new Fields(entry, `${fields.pathOf("filters")}[${i}]`)));
  const scorers = fields.list("scorers").map((entry, i) => {
    const scorer = new Fields(entry, `${fields.pathOf("scorers")}[${i}]`);
    return { ...decodePlugin(scorer), weight: scorer.number("weight") };
  });
  return { filters, scorers, picker: decodePlugin(fields.object("picker")) };
}

/** Profiles by name. */
export function decodeProfiles(fields: Fields): Record<string, ProfileSpec> {
  return Object.fromEntries(fields.keys().map((name) => [name, decodeProfile(fields.object(name))]));
}

function decodePlugin(fields: Fields): PluginSpec {
  const parameters = fields.object("parameters");
  const values: [string, ParameterValue][] = parameters.keys().map((key) => [key, decodeParameter(parameters, key)]);
  return { plugin: fields.string("plugin"), parameters: Object.fromEntries(values) };
}

function decodeParameter(parameters: Fields, key: string): ParameterValue {
  const value = parameters.raw(key);
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") return value;
  throw expected(parameters.pathOf(key), "a number, a string, or true or false", value);
}
