import Table from "cli-table3";
import { FIGURES } from "#shadow/question/uncertainty.ts";
import { type Answered, type Asked, METRICS } from "./ask.ts";

export interface Row {
  readonly name: string;
  readonly asked: readonly Asked[];
}

/** Coverage of each figure and the width of its interval (upper over lower end, geometric mean), a row each. */
export function printCoverage(rows: readonly Row[]): void {
  const table = tableOf(["", ...headsOf(), "all", "figures"]);
  for (const { name, asked } of rows) {
    const cells = METRICS.flatMap(([metric]) =>
      FIGURES.map((figure) => {
        const these = asked.filter((one) => one.metric === metric && one.figure === figure);
        return these.length === 0 ? "-" : `${percent(insideOf(these))} x${widthOf(these).toFixed(2)}`;
      }),
    );
    table.push([name, ...cells, asked.length === 0 ? "-" : percent(insideOf(asked)), String(asked.length)]);
  }
  console.log(table.toString());
}

/** A pair's errors, marked where what happened lies outside the interval. */
export function printPairs(rows: readonly Row[]): void {
  const table = tableOf(["error (! outside)", ...headsOf(), "inside"]);
  for (const { name, asked } of rows) {
    const cells = METRICS.flatMap(([metric]) =>
      FIGURES.map((figure) => {
        const one = asked.find((each) => each.metric === metric && each.figure === figure);
        return one === undefined ? "-" : `${signed(one.error)}${one.inside ? "" : "!"}`;
      }),
    );
    table.push([name, ...cells, `${asked.filter(({ inside }) => inside).length} of ${asked.length}`]);
  }
  console.log(table.toString());
}

/**
 * Coverage and width (upper over lower end, geometric mean) by class of pairs: of the means, and of all figures. Where times
 * to the first token are reported as not knowable, they are left out, and what stands in their place is counted.
 */
export function printClasses(classes: ReadonlyMap<string, readonly Answered[]>): void {
  const table = tableOf([
    "inside 90 %, width",
    ...METRICS.map(([, name]) => `mean ${name}`),
    "figures",
    "not knowable",
  ]);
  for (const [name, answered] of classes) {
    const asked = answered.flatMap((one) => one.asked).filter(({ isChaotic }) => !isChaotic);
    const cells = METRICS.map(([metric]) => {
      const these = asked.filter((one) => one.metric === metric && one.figure === "mean");
      return these.length === 0 ? "-" : `${countOf(these)} x${widthOf(these).toFixed(2)}`;
    });
    const chaotic = answered.flatMap(({ backlog }) => backlog ?? []);
    const held = `growth ${chaotic.filter((one) => one.growthInside).length}, drained ${chaotic.filter((one) => one.drainInside).length} of ${chaotic.length}`;
    table.push([name, ...cells, `${countOf(asked)} ${percent(insideOf(asked))}`, chaotic.length === 0 ? "-" : held]);
  }
  console.log(table.toString());
}

function countOf(asked: readonly Asked[]): string {
  return `${asked.filter(({ inside }) => inside).length} of ${asked.length}`;
}

export function tableOf(head: readonly string[]): Table.Table {
  return new Table({ head: [...head], style: { head: [], border: [], compact: true } });
}

export function headsOf(): string[] {
  return METRICS.flatMap(([, name]) => FIGURES.map((figure) => `${name} ${figure}`));
}

export function insideOf(asked: readonly Asked[]): number {
  return asked.filter(({ inside }) => inside).length / asked.length;
}

function widthOf(asked: readonly Asked[]): number {
  return Math.exp(asked.reduce((sum, { width }) => sum + Math.log(width), 0) / asked.length);
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

function signed(share: number): string {
  return `${share < 0 ? "" : "+"}${(100 * share).toFixed(0)} %`;
}
