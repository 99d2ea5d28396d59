import type { Random } from "#core/base/random.ts";
import { isObject, type JsonObject } from "../http/body.ts";

const DEPTH_MAX = 8;
const WORDS = ["alpha", "bravo", "delta", "gamma", "kilo", "lima", "omega", "sigma"];

/**
 * A value that satisfies the plain part of a JSON schema (type, properties, items, enum, const, anyOf, minimum,
 * minItems), the same for the same draws.
 */
export function sampleSchema(schema: JsonObject, random: Random, depth = 0): unknown {
  if ("const" in schema) return schema["const"];
  const choices = schema["enum"];
  if (Array.isArray(choices) && choices.length > 0) return choices[random.below(choices.length)];
  const alternative = ["anyOf", "oneOf", "allOf"].map((key) => schema[key]).find(Array.isArray);
  if (alternative !== undefined && isObject(alternative[0])) return sampleSchema(alternative[0], random, depth + 1);
  switch (typeOf(schema)) {
    case "object":
      return sampleObject(schema, random, depth);
    case "array":
      return sampleArray(schema, random, depth);
    case "integer":
      return Math.ceil(lowest(schema)) + random.below(10);
    case "number":
      return lowest(schema) + random.below(100) / 4;
    case "boolean":
      return random.below(2) === 1;
    case "null":
      return null;
    default:
      return WORDS[random.below(WORDS.length)];
  }
}

function typeOf(schema: JsonObject): unknown {
  const { type } = schema;
  if (Array.isArray(type)) return type[0] as unknown;
  return type ?? ("properties" in schema ? "object" : undefined);
}

function sampleObject(schema: JsonObject, random: Random, depth: number): JsonObject {
  const properties = schema["properties"];
  if (!isObject(properties) || depth >= DEPTH_MAX) return {};
  const sampled = Object.entries(properties).map(([name, property]) => [
    name,
    sampleSchema(isObject(property) ? property : {}, random, depth + 1),
  ]);
  return Object.fromEntries(sampled) as JsonObject;
}

function sampleArray(schema: JsonObject, random: Random, depth: number): unknown[] {
  if (depth >= DEPTH_MAX) return [];
  const least = typeof schema["minItems"] === "number" ? schema["minItems"] : 1;
  const items = isObject(schema["items"]) ? schema["items"] : {};
  return Array.from({ length: Math.min(least, 16) }, () => sampleSchema(items, random, depth + 1));
}

function lowest(schema: JsonObject): number {
  if (typeof schema["minimum"] === "number") return schema["minimum"];
  return typeof schema["exclusiveMinimum"] === "number" ? schema["exclusiveMinimum"] + 1 : 0;
}
