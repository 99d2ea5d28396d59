import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

/** The object that a line holds, or the reason why it holds none. */
export function parseRecord(text: string): JsonRecord | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "not JSON";
  }
  return isRecord(value) ? value : "not a JSON object";
}

export function isRecord(value: unknown): value is JsonRecord {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** A finite number >= 0, or undefined. */
export function amountOf(record: JsonRecord, key: string): number | undefined {
  const value = record[key];
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? value : undefined;
}

/** A time or duration in units of `microsPerUnit` that is a number of microseconds without loss, or undefined. */
export function momentOf(record: JsonRecord, key: string, microsPerUnit: number): number | undefined {
  const value = amountOf(record, key);
  return value !== undefined && value * microsPerUnit <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

/** What a time has to be, where `momentOf` finds none. */
export const MOMENT_RANGE = "from 0 to 285 years";

/** A whole number of tokens in [0, REQUEST_TOKENS_MAX], or undefined. */
export function tokenCount(record: JsonRecord, key: string): number | undefined {
  const value = amountOf(record, key);
  return value !== undefined && Number.isInteger(value) && value <= REQUEST_TOKENS_MAX ? value : undefined;
}

/** Whole numbers in [0, max], or undefined. */
export function wholeNumbers(value: unknown, max: number): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items: readonly unknown[] = value;
  return items.every((item) => Number.isInteger(item) && Number(item) >= 0 && Number(item) <= max)
    ? items.map(Number)
    : undefined;
}

export function textField(record: JsonRecord, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}
