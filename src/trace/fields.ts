import { BLOCK_WORDS_MAX } from "#core/prompt/block-hash.ts";

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
  | "corrupt";

export type JsonObject = Readonly<Record<string, unknown>>;

/** Typed access to parsed JSON. Every getter throws TraceFormatError with the path, what it expected and what it got. */
export class Fields {
  readonly #values: JsonObject;
  readonly #path: string;

  constructor(value: unknown, path: string) {
    if (!isObject(value)) throw expected(path, "an object", value);
    this.#values = value;
    this.#path = path;
  }

  has(key: string): boolean {
    return this.#values[key] !== undefined;
  }

  raw(key: string): unknown {
    return this.#values[key];
  }

  object(key: string): Fields {
    return new Fields(this.#values[key], this.pathOf(key));
  }

  list(key: string): readonly unknown[] {
    const value = this.#values[key];
    if (!Array.isArray(value)) throw expected(this.pathOf(key), "a list", value);
    return value;
  }

  keys(): string[] {
    return Object.keys(this.#values);
  }

  string(key: string, absent?: string): string {
    const value = this.#values[key];
    if (value === undefined && absent !== undefined) return absent;
    if (typeof value !== "string") throw expected(this.pathOf(key), "a string", value);
    return value;
  }

  strings(key: string): string[] {
    return this.list(key).map((value, i) => {
      if (typeof value !== "string") throw expected(`${this.pathOf(key)}[${i}]`, "a string", value);
      return value;
    });
  }

  oneOf<const T extends string>(key: string, accepted: readonly T[]): T {
    const value = this.#values[key];
    const found = accepted.find((word) => word === value);
    if (found === undefined) throw expected(this.pathOf(key), `one of ${accepted.join(", ")}`, value);
    return found;
  }

  boolean(key: string, absent?: boolean): boolean {
    const value = this.#values[key];
    if (value === undefined && absent !== undefined) return absent;
    if (typeof value !== "boolean") throw expected(this.pathOf(key), "true or false", value);
    return value;
  }

  number(key: string, absent?: number): number {
    const value = this.#values[key];
    if (value === undefined && absent !== undefined) return absent;
    if (typeof value !== "number") throw expected(this.pathOf(key), "a number", value);
    return value;
  }

  /** A safe integer of at least `min`. */
  integer(key: string, min: number, absent?: number): number {
    const value = this.#values[key];
    if (value === undefined && absent !== undefined) return absent;
    if (!isInteger(value) || value < min) throw expected(this.pathOf(key), `an integer of at least ${min}`, value);
    return value;
  }

  /** Tokens in a block. */
  blockTokens(key: string): number {
    const value = this.integer(key, 1);
    if (value > BLOCK_WORDS_MAX) throw expected(this.pathOf(key), `an integer of at most ${BLOCK_WORDS_MAX}`, value);
    return value;
  }

  optionalNumber(key: string): number | undefined {
    return this.has(key) ? this.number(key) : undefined;
  }

  optionalInteger(key: string, min: number): number | undefined {
    return this.has(key) ? this.integer(key, min) : undefined;
  }

  optionalStrings(key: string): string[] | undefined {
    return this.has(key) ? this.strings(key) : undefined;
  }

  pathOf(key: string): string {
    return this.#path === "" ? key : `${this.#path}.${key}`;
  }
}

export function expected(path: string, what: string, got: unknown): TraceFormatError {
  return new TraceFormatError("invalid", `${path}: expected ${what}, got ${shown(got)}`);
}

function shown(value: unknown): string {
  const text = value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
