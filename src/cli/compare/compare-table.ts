import Table from "cli-table3";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { type Compared, type Gap, SHARES, type Transfer, type TransferAnswer } from "#shadow/question/compare.ts";
import { percentOf, signedPercentOf } from "../output/figure-text.ts";

const NAMES: Readonly<Record<Compared, string>> = {
  ttftMean: "TTFT mean",
  ttftP50: "TTFT p50",
  ttftP99: "TTFT p99",
  tpotMean: "TPOT mean",
  tpotP99: "TPOT p99",
  e2eMean: "E2E mean",
  e2eP50: "E2E p50",
  e2eP99: "E2E p99",
  hitRatio: "hit ratio",
  goodput: "goodput",
};
/** Shown policy by policy; the others only in the summary. */
const DETAILED: ReadonlySet<Compared> = new Set(["ttftMean", "tpotMean", "e2eMean", "hitRatio", "goodput"]);

/** How simulations carry over, for people. Times in milliseconds. */
export function compareTable({ policies, figures }: TransferAnswer): string {
  const entries = Object.entries(figures) as [Compared, Transfer][];
  const summary = plain(["", "Spearman", "pairs in order", "mean gap", "regret of its favourite"]);
  for (const [figure, transfer] of entries) summary.push([NAMES[figure], ...summaryCells(transfer)]);
  const detail = plain(["", "policy, best live first", "live", "simulated", "gap", "relative"]);
  for (const [figure, { gaps }] of entries) {
    if (!DETAILED.has(figure)) continue;
    gaps.forEach((gap, i) => detail.push([i === 0 ? NAMES[figure] : "", ...gapCells(gap, figure)]));
  }
  if (policies.length === 1)
    return `${policies[0]}, simulated against live, times in ms: one policy, so no ranks\n${detail.toString()}\n`;
  return `${policies.length} policies, simulated against live, times in ms\n${summary.toString()}\n${detail.toString()}\n`;
}

function summaryCells({ spearman, pairs, pairsPreserved, relativeMeanAbsolute, regret }: Transfer): string[] {
  return [
    spearman === undefined ? "-" : spearman.toFixed(3),
    `${pairsPreserved} of ${pairs}`,
    relativeMeanAbsolute === undefined ? "-" : percentOf(relativeMeanAbsolute),
    regret === undefined ? "-" : percentOf(regret),
  ];
}

function gapCells({ policy, live, simulated, absolute, relative }: Gap, figure: Compared): string[] {
  const value = (one: number) => (SHARES.has(figure) ? percentOf(one) : (one / MICROS_PER_MILLI).toFixed(2));
  const signed = relative === undefined ? "-" : signedPercentOf(relative);
  return [policy, value(live), value(simulated), value(absolute), signed];
}

function plain(head: string[]): Table.Table {
  return new Table({
    head,
    style: { head: [], border: [], compact: true },
    colAligns: ["left", ...head.slice(1).map(() => "right" as const)],
  });
}
