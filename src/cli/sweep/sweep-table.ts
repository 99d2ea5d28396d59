import type { Distribution } from "#sim/result/distribution.ts";
import type { PerMetric, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { brokenName, figureTable, millisOf, percentOf, wrapped } from "../output/figure-text.ts";

const ROWS_MAX = 200;
const ERRORS_MAX = 20;
const WIDTHS = [7, 34, 26, 11, 11, 11, 11, 9] as const;

/** What is read of simulate's result. */
interface Simulated {
  readonly policyId: string;
  readonly metrics: {
    readonly ttftMicros: Readonly<Record<string, Distribution>>;
    readonly tpotMicros: Readonly<Record<string, Distribution>>;
    readonly e2eMicros: Readonly<Record<string, Distribution>>;
    readonly cacheHitRate: { readonly gpu: number };
  };
}

interface PointLine {
  readonly point: number;
  readonly axes: Readonly<Record<string, unknown>>;
  readonly result?: WhatIfAnswer | Simulated;
  readonly error?: string;
}

interface Row {
  readonly name: string;
  readonly figures: PerMetric<Distribution | undefined>;
  readonly hitRatio: number;
}

/** A row for every profile at every point: that which was asked about, beside the one in force. */
export function sweepTable(lines: readonly string[]): string {
  const heads = ["point", "", "profile", "mean TTFT", "mean TPOT", "mean E2E", "p99 E2E", "hits"];
  const table = figureTable(heads, WIDTHS);
  const errors: string[] = [];
  let rows = 0;
  let left = 0;
  for (const line of lines) {
    const { point, axes, result, error } = JSON.parse(line) as PointLine;
    const place = Object.entries(axes).map(([name, value]) => brokenName(`${name}=${String(value)}`, WIDTHS[1]));
    const all = result === undefined ? [] : "candidates" in result ? askedOf(result) : [simulatedRow(result)];
    for (const [i, { name, figures, hitRatio }] of all.entries()) {
      if (rows++ >= ROWS_MAX) left++;
      else
        table.push([
          i === 0 ? String(point) : "",
          i === 0 ? place.join("\n") : "",
          brokenName(name, WIDTHS[2]),
          mean(figures.ttftMicros),
          mean(figures.tpotMicros),
          mean(figures.e2eMicros),
          figures.e2eMicros === undefined ? "-" : millisOf(figures.e2eMicros.p99),
          percentOf(hitRatio),
        ]);
    }
    if (error !== undefined) errors.push(`point ${point} (${place.join(", ")}): ${error}`);
  }
  const more = left === 0 ? [] : [`${left} more rows are in the results alone.`];
  const failed = errors.slice(0, ERRORS_MAX).map((text) => wrapped(text));
  return `${["Simulated, milliseconds.", table.toString(), ...more, ...failed].join("\n")}\n`;
}

function mean(figures: Distribution | undefined): string {
  return figures === undefined ? "-" : millisOf(figures.mean);
}

function askedOf({ candidates }: WhatIfAnswer): Row[] {
  return candidates.map(({ name, predicted, hitRatio }) => ({ name, figures: predicted, hitRatio }));
}

function simulatedRow({ policyId, metrics }: Simulated): Row {
  const { ttftMicros, tpotMicros, e2eMicros, cacheHitRate } = metrics;
  const figures = { ttftMicros: ttftMicros["all"], tpotMicros: tpotMicros["all"], e2eMicros: e2eMicros["all"] };
  return { name: policyId, figures, hitRatio: cacheHitRate.gpu };
}
