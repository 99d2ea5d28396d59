/** What is wrong with a configuration: where, and what would be accepted. */
export interface Problem {
  /** For example `stepTime.baseMicros`; empty for the whole. */
  readonly path: string;
  readonly message: string;
}

/**
 * Reads an object of unknown shape key by key and collects every problem instead of stopping at the first. After a
 * problem a placeholder of the right type is returned, so that reading goes on; the caller discards the result.
 */
export class Reader {
  readonly problems: Problem[];
  readonly #path: string;
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #read = new Set<string>();

  constructor(value: unknown, path: string, problems: Problem[] = []) {
    this.problems = problems;
    this.#path = path;
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    this.#values = new Map(isObject ? Object.entries(value) : []);
    if (!isObject) this.#report("", "must be an object");
  }

  /** The default undefined makes the key required. */
  number(key: string, min: number, max: number, otherwise: number | undefined): number {
    return this.#numeric(key, otherwise, `a number from ${min} to ${max}`, (value) => value >= min && value <= max);
  }

  integer(key: string, min: number, max: number, otherwise: number | undefined): number {
    const accepts = (value: number) => Number.isInteger(value) && value >= min && value <= max;
    return this.#numeric(key, otherwise, `a whole number from ${min} to ${max}`, accepts);
  }

  /** Microseconds, fractions allowed, at most an hour. */
  micros(key: string, otherwise: number | undefined): number {
    return this.number(key, 0, 3_600_000_000, otherwise);
  }

  flag(key: string, otherwise: boolean): boolean {
    const value = this.#take(key);
    if (value === undefined) return otherwise;
    if (typeof value !== "boolean") this.#report(key, "must be true or false");
    return value === true;
  }

  choice<T extends string>(key: string, accepted: readonly T[], otherwise: T | undefined): T {
    const value = this.#take(key) ?? otherwise;
    const chosen = accepted.find((name) => name === value);
    if (chosen === undefined) this.#report(key, `must be one of ${accepted.join(", ")}`);
    return chosen ?? (accepted[0] as T);
  }

  /** An array of finite numbers, not empty. */
  numbers(key: string): readonly number[] {
    const value = this.#take(key);
    const valid = Array.isArray(value) && value.length > 0 && value.every((item) => Number.isFinite(item));
    if (!valid) this.#report(key, "must be a list of numbers, at least one");
    return valid ? (value as number[]) : [];
  }

  /** A list of rows of `width` finite numbers, not empty. */
  rows(key: string, width: number): readonly (readonly number[])[] {
    const value = this.#take(key);
    const isRow = (row: unknown) =>
      Array.isArray(row) && row.length === width && row.every((item) => Number.isFinite(item));
    const valid = Array.isArray(value) && value.length > 0 && value.every((row) => isRow(row));
    if (!valid) this.#report(key, `must be a list of rows of ${width} numbers, at least one row`);
    return valid ? (value as number[][]) : [];
  }

  /** An object, or undefined where the key is absent or null. */
  optional<T>(key: string, read: (reader: Reader) => T): T | undefined {
    const value = this.#take(key);
    return value === undefined || value === null ? undefined : this.#descend(value, key, read);
  }

  required<T>(key: string, read: (reader: Reader) => T): T {
    return this.#descend(this.#take(key), key, read);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** Reports the keys that nobody asked for. */
  finish(): void {
    for (const key of this.#values.keys()) {
      if (!this.#read.has(key)) this.#report(key, `is unknown; known here: ${[...this.#read].join(", ")}`);
    }
  }

  #numeric(key: string, otherwise: number | undefined, accepted: string, accepts: (value: number) => boolean): number {
    const value = this.#take(key) ?? otherwise;
    if (typeof value === "number" && accepts(value)) return value;
    this.#report(key, `must be ${accepted}`);
    return 1;
  }

  #descend<T>(value: unknown, key: string, read: (reader: Reader) => T): T {
    const reader = new Reader(value, this.#join(key), this.problems);
    const result = read(reader);
    reader.finish();
    return result;
  }

  #take(key: string): unknown {
    this.#read.add(key);
    return this.#values.get(key);
  }

  #report(key: string, message: string): void {
    this.problems.push({ path: this.#join(key), message });
  }

  #join(key: string): string {
    if (this.#path === "" || key === "") return this.#path + key;
    return `${this.#path}.${key}`;
  }
}
