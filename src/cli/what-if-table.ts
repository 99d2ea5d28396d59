import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "#shadow/figures.ts";
import type { PairedDifference } from "#shadow/paired.ts";
import type { CandidateAnswer, Metric, WhatIfAnswer } from "#shadow/what-if.ts";
import { figureTable, millis, signedPercent } from "./figure-text.ts";

const METRICS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];

/** The answer for people: predictions, differences with their intervals, and the model's own error. */
export function whatIfTable(answer: WhatIfAnswer): string {
  const parts = [
    `${answer.requests} requests; in force: ${answer.inForce}. Times in milliseconds, simulated.`,
    predictions(answer),
    `Difference to ${answer.inForce}, both simulated, request by request: mean [95 % interval]`,
    differences(answer),
    errors(answer),
  ];
  return `${parts.join("\n")}\n`;
}

function predictions({ candidates }: WhatIfAnswer): string {
  const heads = METRICS.flatMap(([, name]) => [`${name} mean`, "p50", "p99"]);
  const table = figureTable(["profile", ...heads, "hits", "imbalance", "done"]);
  for (const one of candidates) {
    const figures = METRICS.flatMap(([metric]) => distributionCells(one.predicted[metric]));
    table.push([one.name, ...figures, percent(one.hitRatio), one.imbalance.toFixed(2), String(one.completed)]);
  }
  return table.toString();
}

function differences({ candidates, inForce }: WhatIfAnswer): string {
  const table = figureTable(["profile", ...METRICS.map(([, name]) => name), "faster E2E", "same endpoint"]);
  for (const one of candidates) {
    if (one.name === inForce) continue;
    const cells = METRICS.map(([metric]) => differenceCell(one.difference[metric]));
    table.push([one.name, ...cells, likelihood(one), percent(one.agreement)]);
  }
  return table.toString();
}

function errors({ modelError, inForce }: WhatIfAnswer): string {
  if (modelError === undefined)
    return "Model error: not known, since this traffic was not run as it is simulated here.";
  const table = figureTable(["", "predicted mean", "observed mean", "mean", "p50", "p99", "MAPE", "r", "pairs"]);
  for (const [metric, name] of METRICS) {
    const error = modelError[metric];
    if (error !== undefined) table.push([name, ...errorCells(error)]);
  }
  return `Model error: ${inForce} simulated against what really happened\n${table.toString()}`;
}

function distributionCells(figures: Distribution | undefined): string[] {
  return figures === undefined ? ["-", "-", "-"] : [millis(figures.mean), millis(figures.p50), millis(figures.p99)];
}

function differenceCell(difference: PairedDifference | undefined): string {
  if (difference === undefined) return "-";
  return `${signed(difference.mean)} [${signed(difference.low)}, ${signed(difference.high)}]`;
}

/** Share of resamples in which the candidate's mean E2E is below that of the profile in force. */
function likelihood({ difference }: CandidateAnswer): string {
  const e2e = difference.e2eMicros;
  return e2e === undefined ? "-" : percent(e2e.belowZero);
}

function errorCells(error: PredictionError): string[] {
  return [
    millis(error.predictedMean),
    millis(error.observedMean),
    signedPercent(error.meanRelative),
    signedPercent(error.p50Relative),
    signedPercent(error.p99Relative),
    percent(error.mape),
    Number.isNaN(error.correlation) ? "-" : error.correlation.toFixed(3),
    String(error.pairs),
  ];
}

function signed(micros: number): string {
  return `${micros < 0 ? "-" : "+"}${millis(Math.abs(micros))}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
