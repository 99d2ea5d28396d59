import type { ParameterValue } from "./spec.ts";

/** One parameter of a plugin: bounds, default and meaning, stated once for checking, documents and `profiles`. */
export type ParameterDescription =
  | {
      readonly type: "number" | "integer";
      readonly default: number;
      readonly min?: number;
      readonly max?: number;
      readonly meaning: string;
    }
  | { readonly type: "choice"; readonly default: string; readonly values: readonly string[]; readonly meaning: string }
  | { readonly type: "string"; readonly default: string; readonly meaning: string }
  | { readonly type: "boolean"; readonly default: boolean; readonly meaning: string };

export type ParameterTable = Readonly<Record<string, ParameterDescription>>;

/** Typed values of a table, defaults filled in. */
export type ParameterValues<T extends ParameterTable> = {
  readonly [K in keyof T]: T[K]["type"] extends "number" | "integer"
    ? number
    : T[K]["type"] extends "boolean"
      ? boolean
      : T[K] extends { readonly values: readonly (infer V)[] }
        ? V
        : string;
};

/** What is wrong with a value from outside, and where. */
export interface ParameterProblem {
  readonly path: string;
  readonly message: string;
}

/** Fills defaults in. Values were checked before. */
export function resolveParameters<T extends ParameterTable>(
  table: T,
  given: Readonly<Record<string, ParameterValue>>,
): ParameterValues<T> {
  const values: Record<string, ParameterValue> = {};
  for (const [name, description] of Object.entries(table)) values[name] = given[name] ?? description.default;
  return values as ParameterValues<T>;
}

/**
 * What is wrong with parameters of a plugin, under `path`: unknown names, and values of the wrong type or out of
 * bounds.
 */
export function checkParameters(
  table: ParameterTable,
  given: Readonly<Record<string, unknown>>,
  path: string,
): ParameterProblem[] {
  const problems: ParameterProblem[] = [];
  for (const [name, value] of Object.entries(given)) {
    const description = Object.hasOwn(table, name) ? table[name] : undefined;
    const message =
      description === undefined
        ? `unknown parameter; accepted: ${Object.keys(table).join(", ") || "none"}`
        : mismatch(description, value);
    if (message !== undefined) problems.push({ path: `${path}.${name}`, message });
  }
  return problems;
}

function mismatch(description: ParameterDescription, value: unknown): string | undefined {
  switch (description.type) {
    case "number":
    case "integer": {
      const { type, min = -Infinity, max = Infinity } = description;
      const fits =
        typeof value === "number" &&
        value >= min &&
        value <= max &&
        (type === "number" ? Number.isFinite(value) : Number.isSafeInteger(value));
      return fits
        ? undefined
        : `expected ${type === "integer" ? "an integer" : "a number"}${range(min, max)}, got ${shown(value)}`;
    }
    case "choice":
      return typeof value === "string" && description.values.includes(value)
        ? undefined
        : `expected one of ${description.values.join(", ")}, got ${shown(value)}`;
    case "string":
      return typeof value === "string" ? undefined : `expected text, got ${shown(value)}`;
    case "boolean":
      return typeof value === "boolean" ? undefined : `expected true or false, got ${shown(value)}`;
  }
}

function range(min: number, max: number): string {
  if (min === -Infinity && max === Infinity) return "";
  if (max === Infinity) return ` of at least ${min}`;
  if (min === -Infinity) return ` of at most ${max}`;
  return ` from ${min} to ${max}`;
}

/** A value as an error message shows it. */
export function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}
