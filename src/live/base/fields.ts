/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A truth value as vLLM's request models read it (Pydantic's lax mode): true and false, 1 and 0, and some words in any
 * case. Undefined for what they refuse.
 */
export function laxBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === 1 || value === 0) return value === 1;
  return typeof value === "string" ? WORDS.get(value.toLowerCase()) : undefined;
}

const WORDS: ReadonlyMap<string, boolean> = new Map([
  ...["1", "on", "t", "true", "y", "yes"].map((word): [string, boolean] => [word, true]),
  ...["0", "off", "f", "false", "n", "no"].map((word): [string, boolean] => [word, false]),
]);
