import { COVERAGE } from "#shadow/question/interval.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "#shadow/question/figures.ts";
import type { Metric } from "#shadow/question/metric.ts";
import { causeWords } from "#shadow/report/cause-words.ts";
import { type Coverage, type FigureIntervals, FIGURES } from "#shadow/question/uncertainty.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { figureTable, millis, percent, signedMillis, signedPercent } from "../figure-text.ts";
import { regretTables } from "./what-if-regret-table.ts";

const METRICS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];
/** Causes of a difference that are told. */
const CAUSES_TOLD = 4;
const WITHIN = `${100 * COVERAGE} %`;

/** The answer for people: predictions, differences with their intervals, why, and the model's own error. */
export function whatIfTable(answer: WhatIfAnswer): string {
  const parts = [
    `${answer.requests} requests; in force: ${answer.inForce}. Times in milliseconds, simulated${intervalWords(answer)}.`,
    predictions(answer),
    rankingWords(answer),
    ...differences(answer),
    ...causes(answer),
    ...regretTables(answer),
    errors(answer),
    ...coverage(answer),
    ...scenarioWords(answer),
  ];
  return `${parts.filter((part) => part !== "").join("\n")}\n`;
}

function intervalWords({ replicas }: WhatIfAnswer): string {
  return replicas === 0
    ? ""
    : `; below each what ${replicas} replicas expect (~) and its ${WITHIN} prediction interval`;
}

function predictions({ candidates, ranking }: WhatIfAnswer): string {
  const heads = METRICS.flatMap(([, name]) => [`${name} mean`, "p50", "p99"]);
  const table = figureTable(["profile", ...heads, "hits", "imbalance", "busiest", "done", "first"]);
  candidates.forEach((one, i) => {
    const figures = METRICS.flatMap(([metric]) => distributionCells(one.predicted[metric], one.intervals[metric]));
    const first = ranking.first[i];
    table.push([
      one.name,
      ...figures,
      percent(one.hitRatio),
      one.imbalance.toFixed(2),
      percent(one.busiestShare),
      String(one.completed),
      first === undefined ? "" : percent(first),
    ]);
  });
  return table.toString();
}

/** How sure each place in the order is. */
function rankingWords({ candidates, ranking, replicas }: WhatIfAnswer): string {
  if (ranking.first.length < 2) return "";
  const steps = ranking.before.slice(1).map((_, i) => {
    return `${candidates[i]!.name} before ${candidates[i + 1]!.name} ${percent(ranking.before[i]![i + 1]!)}`;
  });
  const from = replicas === 0 ? "requests resampled" : "replicas, requests resampled";
  return `Order by mean E2E (first: share of draws that it leads; ${from}): ${steps.join(", ")}`;
}

function differences({ candidates, inForce, replicas }: WhatIfAnswer): string[] {
  const others = candidates.filter(({ name }) => name !== inForce);
  if (others.length === 0) return [];
  const table = figureTable(["profile", ...METRICS.map(([, name]) => name), "faster E2E", "same endpoint"]);
  for (const one of others) {
    const cells = METRICS.map(([metric]) => differenceCell(one, metric));
    table.push([one.name, ...cells, likelihood(one), one.agreement === undefined ? "" : percent(one.agreement)]);
  }
  const below = replicas === 0 ? "" : `; below, its ${WITHIN} prediction interval on the same drawn engines`;
  return [
    `Difference to ${inForce}, both simulated, request by request: mean [95 % over requests]${below}`,
    table.toString(),
  ];
}

function causes({ candidates, inForce }: WhatIfAnswer): string[] {
  const table = figureTable(["profile", "requests", "what became of them", "TTFT", "E2E", "of the mean difference"]);
  for (const { name, causes: found } of candidates) {
    for (const one of found.slice(0, CAUSES_TOLD)) {
      const each = [
        signedMillis(one.ttftChangeMicros),
        signedMillis(one.e2eChangeMicros),
        signedMillis(one.shareMicros),
      ] as const;
      table.push([name, String(one.requests), { content: causeWords(one), hAlign: "left" }, ...each]);
    }
  }
  return table.length === 0
    ? []
    : [`Why they differ from ${inForce}: largest parts of the mean E2E difference`, table.toString()];
}

function errors({ modelError, uncompared, inForce }: WhatIfAnswer): string {
  if (modelError === undefined)
    return "Model error: not known, since this traffic was not run as it is simulated here.";
  const table = figureTable(["", "predicted mean", "observed mean", "mean", "p50", "p99", "MAPE", "r", "pairs"]);
  for (const [metric, name] of METRICS) {
    const error = modelError[metric];
    if (error !== undefined) table.push([name, ...errorCells(error)]);
  }
  return [
    `Model error: ${inForce} simulated against what really happened`,
    table.toString(),
    ...Object.entries(uncompared).map(([reason, count]) => `${count} not compared: ${reason}`),
  ].join("\n");
}

function coverage({ coverage: covered, inForce }: WhatIfAnswer): string[] {
  if (covered === undefined) return [];
  const table = figureTable(["observed / predicted", ...FIGURES]);
  for (const [metric, name] of METRICS) {
    const one: Coverage | undefined = covered[metric];
    if (one === undefined) continue;
    table.push([
      name,
      ...FIGURES.map((figure) => {
        const { observed, low, high, inside } = one[figure];
        return `${observed.toFixed(3)} ${inside ? "inside" : "OUTSIDE"} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
      }),
    ]);
  }
  return [`Whether what really happened lies in the ${WITHIN} interval of ${inForce}`, table.toString()];
}

function scenarioWords({ candidates, modelError }: WhatIfAnswer): string[] {
  const scenarios = [...new Set(candidates.flatMap(({ scenario }) => (scenario === "" ? [] : [scenario])))];
  if (scenarios.length === 0) return [];
  const error = modelError === undefined ? "No model error" : "The model error above does not";
  const verb = modelError === undefined ? "covers" : "cover";
  return [`${error} ${verb} ${scenarios.join(", ")}: nothing like it was observed.`];
}

function distributionCells(figures: Distribution | undefined, intervals: FigureIntervals | undefined): string[] {
  if (figures === undefined) return ["-", "-", "-"];
  return FIGURES.map((figure) => {
    const range = intervals?.[figure];
    const below = range === undefined ? "" : `\n~${millis(range.expected)} ${millis(range.low)}-${millis(range.high)}`;
    return `${millis(figures[figure])}${below}`;
  });
}

function differenceCell(
  { difference: all, differenceInterval, exceedsNoise }: CandidateAnswer,
  metric: Metric,
): string {
  const [difference, interval] = [all[metric], differenceInterval[metric]];
  if (difference === undefined) return "-";
  const below = interval === undefined ? "" : `\n[${signedMillis(interval.low)}, ${signedMillis(interval.high)}]`;
  const noise = exceedsNoise[metric] === false ? "\nwithin the noise" : "";
  return `${signedMillis(difference.mean)} [${signedMillis(difference.low)}, ${signedMillis(difference.high)}]${below}${noise}`;
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
