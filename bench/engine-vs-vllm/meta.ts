import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A run folder's meta.json by paths of keys; what is missing or of another kind is an error that names file and path. */
export class RunMeta {
  readonly #file: string;
  readonly #value: unknown;

  constructor(folder: string) {
    this.#file = join(folder, "meta.json");
    if (!existsSync(this.#file)) throw new Error(`${this.#file}: expected the settings of the run, got no such file`);
    try {
      this.#value = JSON.parse(readFileSync(this.#file, "utf8"));
    } catch {
      throw new Error(`${this.#file}: expected JSON`);
    }
  }

  /** A whole number, at least 1 or `otherwise`, at the first of the paths that has anything; that where none does. */
  count(paths: readonly string[], otherwise?: number): number {
    const [path, value] = this.#first(paths);
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (typeof value === "number" && Number.isInteger(value) && value >= Math.min(1, otherwise ?? 1)) return value;
    throw this.#problem(path, "a whole number above 0", value);
  }

  /** Any number at or above 0; `otherwise` where there is none. */
  amount(path: string, otherwise?: number): number {
    const [, value] = this.#first([path]);
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (typeof value === "number" && value >= 0) return value;
    throw this.#problem(path, "a number", value);
  }

  /** Also in words: `on`, `default (off)`. */
  flag(paths: readonly string[], otherwise: boolean): boolean {
    const [path, value] = this.#first(paths);
    if (value === undefined) return otherwise;
    if (typeof value === "boolean") return value;
    const word = typeof value === "string" ? /^(?:default \()?(on|off)\)?$/.exec(value)?.[1] : undefined;
    if (word !== undefined) return word === "on";
    throw this.#problem(path, "true or false", value);
  }

  /** One of the words, or any text where none are named. */
  text(path: string, words: readonly string[] = [], otherwise?: string): string {
    const [, value] = this.#first([path]);
    if (value === undefined && otherwise !== undefined) return otherwise;
    if (typeof value === "string" && (words.length === 0 || words.includes(value))) return value;
    throw this.#problem(path, words.length === 0 ? "a text" : words.join(" or "), value);
  }

  /** Whatever is there at the first of the paths that has anything; undefined where none does. */
  raw(paths: readonly string[]): unknown {
    return this.#first(paths)[1];
  }

  #first(paths: readonly string[]): readonly [string, unknown] {
    for (const path of paths) {
      const value = path.split(".").reduce<unknown>(within, this.#value);
      if (value !== undefined && value !== null) return [path, value];
    }
    return [paths.join(" or "), undefined];
  }

  #problem(path: string, expected: string, value: unknown): Error {
    return new Error(`${this.#file}: ${path}: expected ${expected}, got ${JSON.stringify(value) ?? "nothing"}`);
  }
}

function within(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
