import { existsSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { WORKLOAD_NAME } from "./trace-output.ts";

const UNITS: Readonly<Record<string, number>> = {
  us: 1,
  ms: MICROS_PER_MILLI,
  s: MICROS_PER_SECOND,
  m: 60 * MICROS_PER_SECOND,
  h: 3_600 * MICROS_PER_SECOND,
};

/** What every command over traces takes. */
export function addSourceFlags(command: Command): Command {
  return command
    .option("--strict", "refuse a trace with a line that cannot be used", false)
    .option(
      "--seed <n>",
      "seed of what an importer draws: arrivals inside a grid cell, session starts",
      wholeNumber,
      0,
    );
}

/** A time as 90s, 250ms, 2m or a plain number of seconds, in microseconds. */
export function durationFlag(text: string): number {
  const [, digits = "", unit = "s"] = /^(\d+(?:\.\d+)?)(us|ms|s|m|h)?$/.exec(text) ?? [];
  if (digits === "") throw new InvalidArgumentError("expected a time like 90s, 250ms, 2m or 1h");
  return Math.round(Number(digits) * (UNITS[unit] ?? 1));
}

/** "100:200" as [100, 200); either side may be left out. */
export function range(text: string): { readonly from: number; readonly to: number } {
  const [, from = "", to = ""] = /^(\d*):(\d*)$/.exec(text) ?? [];
  const found = { from: from === "" ? 0 : Number(from), to: to === "" ? Infinity : Number(to) };
  if (!text.includes(":") || (from === "" && to === "") || found.from >= found.to)
    throw new InvalidArgumentError("expected a range like 100:200, 100: or :200");
  return found;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (text === "" || !Number.isSafeInteger(value) || value < 0)
    throw new InvalidArgumentError("expected a whole number of 0 or more");
  return value;
}

export function atLeastOne(text: string): number {
  const value = wholeNumber(text);
  if (value === 0) throw new InvalidArgumentError("expected a whole number of 1 or more");
  return value;
}

export function positiveNumber(text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new InvalidArgumentError("expected a number above 0");
  return value;
}

/** Refuses to write over something, and a workload under a name that would not be read as one. */
export function checkOutput(path: string, kind: "workload" | "new"): void {
  if (existsSync(path)) throw new ConfigError([`--output: expected a name that is free, got ${path}`]);
  if (kind === "workload" && !WORKLOAD_NAME.test(path))
    throw new ConfigError([`--output: expected a name that ends with .jsonl, .jsonl.zst or .jsonl.gz, got ${path}`]);
}
