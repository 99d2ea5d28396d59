/** Shortest text that reads back as the same number; minus zero included. Throws a RangeError for what JSON lacks. */
export function jsonNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} has no JSON form`);
  return Object.is(value, -0) ? "-0" : String(value);
}
