import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "#trace/import/json-record.ts";

/** One line of a file of a run; its fields are read by name, and what is no such field is an error that names the line. */
export class RunLine {
  readonly record: JsonRecord;
  readonly #where: string;

  constructor(record: JsonRecord, where: string) {
    this.record = record;
    this.#where = where;
  }

  /** A finite number. */
  number(name: string): number {
    const value = this.optional(name);
    if (value === undefined) throw this.problem(name, "a number");
    return value;
  }

  /** The same, or undefined where the field is missing or null. */
  optional(name: string): number | undefined {
    const value = this.record[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    throw this.problem(name, "a number");
  }

  /** A whole number of at least `min`. */
  count(name: string, min = 0): number {
    const value = this.number(name);
    if (Number.isInteger(value) && value >= min) return value;
    throw this.problem(name, `a whole number of at least ${min}`);
  }

  problem(name: string, expected: string): Error {
    return new Error(
      `${this.#where}: ${name}: expected ${expected}, got ${JSON.stringify(this.record[name]) ?? "nothing"}`,
    );
  }
}

/** The objects of a file of JSON lines. */
export function readJsonLines(folder: string, file: string): RunLine[] {
  return linesOf(folder, file).map(({ text, where }) => {
    const value = parsed(text, where);
    if (!isRecord(value)) throw new Error(`${where}: expected a JSON object, got ${text.slice(0, 60)}`);
    return new RunLine(value, where);
  });
}

/** The lists of a file of JSON lines, of which there may be none. */
export function readJsonLists(folder: string, file: string): (readonly unknown[])[] {
  return linesOf(folder, file, 0).map(({ text, where }) => {
    const list = listOf(parsed(text, where));
    if (list === undefined) throw new Error(`${where}: expected a JSON list, got ${text.slice(0, 60)}`);
    return list;
  });
}

/** The rows of a CSV file of numbers with a head, in whatever order its columns are; what is empty is missing. */
export function readNumberRows(folder: string, file: string): RunLine[] {
  const [head, ...rows] = linesOf(folder, file);
  const names = head?.text.split(",").map((name) => name.trim()) ?? [];
  return rows.map(({ text, where }) => {
    const cells = text.split(",");
    if (cells.length !== names.length)
      throw new Error(`${where}: expected ${names.length} cells as in the head, got ${cells.length}`);
    const values = names.map((name, i): [string, unknown] => {
      const cell = cells[i]!.trim();
      const value = Number(cell);
      return [name, cell === "" ? null : Number.isFinite(value) ? value : cell];
    });
    return new RunLine(Object.fromEntries(values), where);
  });
}

export function listOf(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? (value as readonly unknown[]) : undefined;
}

export function hasFile(folder: string, file: string): boolean {
  return existsSync(join(folder, file));
}

function linesOf(folder: string, file: string, min = 1): { readonly text: string; readonly where: string }[] {
  const path = join(folder, file);
  if (!existsSync(path)) throw new Error(`${path}: expected this file of the run, got no such file`);
  const lines = readFileSync(path, "utf8").split("\n");
  const filled = lines.flatMap((text, i) => (text.trim() === "" ? [] : [{ text, where: `${path}:${i + 1}` }]));
  if (filled.length < min) throw new Error(`${path}: expected lines, got an empty file`);
  return filled;
}

function parsed(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${where}: expected JSON, got ${text.slice(0, 60)}`);
  }
}
