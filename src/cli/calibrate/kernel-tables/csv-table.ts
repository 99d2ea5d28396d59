import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "#config/config-error.ts";

const FILE_BYTES_MAX = 67_108_864;
const ROWS_MAX = 1_000_000;
const SHOWN_CHARS_MAX = 100;
const SHOWN_VALUES_MAX = 12;

/** Lines of a file of comma-separated values without quotes, whose first one names the columns. */
export interface CsvTable {
  readonly file: string;
  /** Of the first row and all others. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The first of these names that one of the folders has, as path. */
export function fileIn(folders: readonly string[], names: readonly string[]): string | undefined {
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
}

/** Throws ConfigError with the file, its line where one is wrong, and the columns that are expected. */
export function readCsv(file: string, expected: readonly string[]): CsvTable {
  const [head = "", ...lines] = textOf(file).trim().split(/\r?\n/);
  if (lines.length === 0 || lines.length > ROWS_MAX)
    throw new ConfigError([`--from-kernels: ${file}: expected 1 to ${ROWS_MAX} rows, got ${lines.length}`]);
  const columns = head.split(",").map((name) => name.trim());
  const missing = expected.filter((name) => !columns.includes(name));
  if (missing.length > 0)
    throw new ConfigError([
      `--from-kernels: ${file}: expected columns ${expected.join(", ")}, got ${columns.join(", ").slice(0, SHOWN_CHARS_MAX)} without ${missing.join(", ")}`,
    ]);
  const rows = lines.map((line, i) => {
    const cells = line.split(",").map((cell) => cell.trim());
    if (cells.length === columns.length) return cells;
    throw new ConfigError([
      `--from-kernels: ${file} line ${i + 2}: expected ${columns.length} columns, got ${line.slice(0, SHOWN_CHARS_MAX)}`,
    ]);
  });
  return { file, columns, rows };
}

/** Reads a column's number of any row. What is empty counts as `otherwise`; without that, a number of 0 or more is asked for. */
export function numbersOf(table: CsvTable, name: string, otherwise?: number): (row: number) => number {
  const place = table.columns.indexOf(name);
  if (place < 0 && otherwise !== undefined) return () => otherwise;
  return (row) => {
    const cell = table.rows[row]?.[place] ?? "";
    const value = cell === "" ? otherwise : Number(cell);
    if (value !== undefined && value >= 0 && value < Infinity) return value;
    throw new ConfigError([
      `--from-kernels: ${table.file} line ${row + 2}: expected a number of 0 or more as ${name}, got ${cell.slice(0, SHOWN_CHARS_MAX) || "nothing"}`,
    ]);
  };
}

/** Numbers of rows that have these words or numbers in these columns. Throws ConfigError, naming what is there, if none has. */
export function rowsWith(table: CsvTable, wanted: Readonly<Record<string, string | number>>): number[] {
  let rows = [...table.rows.keys()];
  for (const [name, value] of Object.entries(wanted)) {
    const place = table.columns.indexOf(name);
    const left = rows.filter((row) => isSame(table.rows[row]![place]!, value));
    if (left.length === 0) {
      const there = [...new Set(rows.map((row) => table.rows[row]![place]!))];
      const more = there.length > SHOWN_VALUES_MAX ? ", ..." : "";
      throw new ConfigError([
        `--from-kernels: ${table.file}: expected rows with ${described(wanted)}, got ${name} ` +
          `${there.slice(0, SHOWN_VALUES_MAX).join(", ").slice(0, SHOWN_CHARS_MAX)}${more}`,
      ]);
    }
    rows = left;
  }
  return rows;
}

function isSame(cell: string, value: string | number): boolean {
  return typeof value === "number" ? cell !== "" && Number(cell) === value : cell.toLowerCase() === value;
}

function described(wanted: Readonly<Record<string, string | number>>): string {
  return Object.entries(wanted)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

function textOf(file: string): string {
  try {
    if (statSync(file).size > FILE_BYTES_MAX) throw new Error(`more than ${FILE_BYTES_MAX} bytes`);
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError([
      `--from-kernels: expected ${file}: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}
