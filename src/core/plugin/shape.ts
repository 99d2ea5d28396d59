import { type ParameterProblem, shown } from "./parameter.ts";

/** A mapping, of anything that a file may hold. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function unknownKeys(
  value: Record<string, unknown>,
  known: readonly string[],
  path: string,
): ParameterProblem[] {
  return Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => ({ path: path === "" ? key : `${path}.${key}`, message: `unknown; accepted: ${known.join(", ")}` }));
}

export function checkChoice(value: unknown, accepted: readonly string[], path: string): ParameterProblem[] {
  if (typeof value === "string" && accepted.includes(value)) return [];
  return [{ path, message: `expected one of ${accepted.join(", ")}, got ${shown(value)}` }];
}
