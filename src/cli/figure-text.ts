import Table from "cli-table3";
import { MICROS_PER_MILLI } from "#core/units.ts";

/** A table of figures: names to the left, numbers to the right. */
export function figureTable(head: string[]): Table.Table {
  return new Table({
    head,
    style: { head: [], border: [] },
    colAligns: ["left", ...head.slice(1).map(() => "right" as const)],
  });
}

export function millis(micros: number): string {
  const value = micros / MICROS_PER_MILLI;
  return value < 100 ? value.toFixed(2) : value.toFixed(0);
}

export function signedMillis(micros: number): string {
  return `${micros < 0 ? "-" : "+"}${millis(Math.abs(micros))}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function signedPercent(share: number): string {
  return `${share < 0 ? "" : "+"}${percent(share)}`;
}
