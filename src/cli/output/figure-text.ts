import Table from "cli-table3";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

/** Characters of a line that a terminal is sure to have room for. */
export const LINE_CHARS = 100;

/** A table of figures: names to the left, numbers to the right. With `widths`, longer words are broken into lines. */
export function figureTable(head: string[], widths?: readonly number[]): Table.Table {
  return new Table({
    head,
    style: { head: [], border: [] },
    colAligns: ["left", ...head.slice(1).map(() => "right" as const)],
    ...(widths && { colWidths: [...widths], wordWrap: true }),
  });
}

/** A name for a column of this width: what has no place to break is broken all the same, rather than cut off. */
export function brokenName(name: string, width: number): string {
  const longest = new RegExp(`\\S{${width - 2}}(?=\\S)`, "g");
  return name.replaceAll(longest, (part) => `${part}\n`);
}

/** Text in lines that a terminal has room for. */
export function wrapped(text: string, chars = LINE_CHARS): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/ (?!%)/)) {
    if (line !== "" && line.length + 1 + word.length > chars) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line].join("\n");
}

export function millisOf(micros: number): string {
  const value = micros / MICROS_PER_MILLI;
  return value < 100 ? value.toFixed(2) : value.toFixed(0);
}

/** A rate a second; one below a hundredth is no 0.00. */
export function rateOf(perSecond: number): string {
  return perSecond > 0 && perSecond < 0.01 ? perSecond.toPrecision(2) : perSecond.toFixed(2);
}

export function signedMillis(micros: number): string {
  return `${micros < 0 ? "-" : "+"}${millisOf(Math.abs(micros))}`;
}

export function percentOf(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function signedPercentOf(share: number): string {
  return `${share < 0 ? "" : "+"}${percentOf(share)}`;
}
