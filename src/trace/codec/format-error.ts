/** What is wrong with one line of a trace. The reader adds the file and the line. */
export class TraceFormatError extends Error {
  override readonly name = "TraceFormatError";
  /** Why, from a closed set, for counting. */
  readonly reason: SkipReason;

  constructor(reason: SkipReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A trace of a version that is not known: nothing of it can be read. */
export class TraceVersionError extends Error {
  override readonly name = "TraceVersionError";
}

/**
 * Why a line was not used.
 *
 * - not-json: it does not parse.
 * - invalid: a field is missing or out of its bounds.
 * - unknown-kind: a kind of record that this version does not have.
 * - unknown-block: its prompt continues a chain that was not read.
 * - duplicate-id: a request arrived whose id is in flight.
 * - torn: the file ends inside the line.
 * - too-long: longer than any record can be.
 * - too-large: small compressed data that becomes larger than any trace; the rest of the file is left out.
 * - corrupt: the compressed data is damaged, and the rest of the file is lost; or lines are not as they were written.
 */
export type SkipReason =
  | "not-json"
  | "invalid"
  | "unknown-kind"
  | "unknown-block"
  | "duplicate-id"
  | "torn"
  | "too-long"
  | "too-large"
  | "corrupt";

/** `path`: where the value stands. */
export function expected(path: string, what: string, got: unknown): TraceFormatError {
  return new TraceFormatError("invalid", `${path}: expected ${what}, got ${shown(got)}`);
}

function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
