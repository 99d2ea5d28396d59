import { SIMULATED_COUNTS, SIMULATED_TOTALS } from "#core/stages.ts";
import { COVERAGE } from "#shadow/figure/interval.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { KNOWABLE_WIDTH } from "#shadow/figure/backlog.ts";
import type { PathCounts } from "#sim/result/path-counts.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "#shadow/figure/figures.ts";
import type { Metric } from "#shadow/figure/metric.ts";
import { causeWords } from "#shadow/report/cause-words.ts";
import { type Coverage, type FigureIntervals, FIGURES } from "#shadow/question/uncertainty.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { areMeansApart, MEANS_APART } from "#shadow/report/means-apart.ts";
import { verdict } from "#shadow/report/verdict.ts";
import {
  brokenName,
  figureTable,
  millisOf,
  percentOf,
  signedMillis,
  signedPercentOf,
  wrapped,
} from "../output/figure-text.ts";
import { objectiveSentence, type WhatIfObjective } from "./objective-sentence.ts";
import { switchSentence } from "./what-if-switch.ts";
import { regretTables } from "./what-if-regret-table.ts";

const METRICS: readonly (readonly [Metric, string])[] = [
  ["ttftMicros", "TTFT"],
  ["tpotMicros", "TPOT"],
  ["e2eMicros", "E2E"],
];
/** Causes of a difference that are printed. */
const CAUSES_PRINTED = 4;
const WITHIN = `${100 * COVERAGE} %`;

export interface TableOptions {
  /** Name of an engine that nobody stated. */
  readonly guessed?: string;
  /** The first sentence answers it. */
  readonly objective?: WhatIfObjective;
  /** Whose traffic it was, where that is another router's. */
  readonly router?: string;
}

/** The whole answer for people: the verdict, then predictions, differences, why, and the model's own error. */
export function whatIfTable(answer: WhatIfAnswer, { guessed, objective, router }: TableOptions): string {
  const change = router === undefined ? undefined : switchSentence(answer, router);
  const parts = [
    ...(change === undefined ? [] : [wrapped(change)]),
    ...(objective === undefined ? [] : [wrapped(objectiveSentence(answer, objective))]),
    wrapped(verdict(answer, guessed)),
    "",
    wrapped(
      `${answer.requests} requests; in force: ${answer.inForce}. Simulated, milliseconds${intervalWords(answer)}.`,
    ),
    predictions(answer, router),
    ...sessions(answer),
    ...backlogs(answer),
    placement(answer),
    ...cost(answer),
    ...faults(answer),
    rankingWords(answer),
    ...differences(answer),
    ...causes(answer),
    ...regretTables(answer),
    errors(answer),
    ...coverage(answer),
    ...scenarioWords(answer),
  ];
  const blank = 1 + [objective, change].filter((sentence) => sentence !== undefined).length;
  return `${parts.filter((part, i) => part !== "" || i === blank).join("\n")}\n`;
}

function intervalWords({ replicas }: WhatIfAnswer): string {
  return replicas === 0 ? "" : `: the estimate, and below it its ${WITHIN} prediction interval (${replicas} replicas)`;
}

const PROFILE_WIDTH = 22;

function nameOf({ name }: CandidateAnswer): string {
  return brokenName(name, PROFILE_WIDTH);
}

/** A row for each profile, and a line or two in it for each metric. */
function predictions({ candidates, replicas, measured }: WhatIfAnswer, router: string | undefined): string {
  const table = figureTable(["profile", "", ...FIGURES], [PROFILE_WIDTH, 6, 22, 22, 22]);
  const gap = replicas === 0 ? "\n" : `\n${WITHIN}\n`;
  if (router !== undefined && measured !== undefined) {
    const lines = METRICS.map(([metric]) => distributionCells(measured[metric], undefined, false));
    const cells = FIGURES.map((_, i) => lines.map((line) => line[i]).join("\n"));
    const name = brokenName(`${router}, measured`, PROFILE_WIDTH);
    table.push([name, METRICS.map(([, metric]) => metric).join("\n"), ...cells]);
  }
  for (const one of candidates) {
    const lines = METRICS.map(([metric]) =>
      distributionCells(one.predicted[metric], one.intervals[metric], replicas > 0),
    );
    const cells = FIGURES.map((_, i) => lines.map((line) => line[i]).join("\n"));
    table.push([
      nameOf(one),
      METRICS.map(([, name]) => name).join(gap) + (replicas === 0 ? "" : gap.trimEnd()),
      ...cells,
    ]);
  }
  return table.toString();
}

/** From a session's first request to its last answer, where sessions of several requests are known. */
function sessions({ candidates, requests }: WhatIfAnswer): string[] {
  const known = candidates.flatMap(({ sessions: of }) => of ?? []);
  if (!known.some(({ count }) => count > 0 && count < requests)) return [];
  const table = figureTable(["profile", "sessions", ...FIGURES], [PROFILE_WIDTH, 10, 14, 14, 14]);
  for (const one of candidates) {
    const cells = FIGURES.map((figure) => (one.sessions === undefined ? "-" : millisOf(one.sessions[figure])));
    table.push([nameOf(one), String(one.sessions?.count ?? 0), ...cells]);
  }
  return ["Session completion time, from the first request to the last answer", table.toString()];
}

/** Where a queue near saturation leaves no time to the first token to be known: what is known of the queue. */
function backlogs({ candidates }: WhatIfAnswer): string[] {
  return candidates.flatMap(({ name, backlog }) => {
    if (backlog === undefined) return [];
    const { growth, growthInterval, drainMicros, drainInterval } = backlog;
    const a = (part: number) => `${part >= 0 ? "+" : ""}${(MILLIS_PER_SECOND * part).toFixed(0)}`;
    return [
      wrapped(
        `${name} is near saturation: its time to the first token cannot be known within a factor of ${KNOWABLE_WIDTH}. ` +
          `Known is that requests wait ${a(growth)} ms longer with each second (${a(growthInterval.low)} to ${a(growthInterval.high)}), ` +
          `and that the last answer ends ${seconds(drainMicros)} s after the last request (${seconds(drainInterval.low)} to ${seconds(drainInterval.high)})`,
      ),
    ];
  });
}

const MILLIS_PER_SECOND = 1_000;

function seconds(micros: number): string {
  return (micros / MICROS_PER_SECOND).toFixed(1);
}

function placement({ candidates, ranking, inForce }: WhatIfAnswer): string {
  const heads = ["profile", "cache hits", "imbalance", "busiest", "same endpoint", "done", "first"];
  const table = figureTable(heads, [PROFILE_WIDTH, 12, 11, 10, 15, 9, 9]);
  candidates.forEach((one, i) => {
    const first = ranking.first[i];
    table.push([
      nameOf(one),
      percentOf(one.hitRatio),
      one.imbalance.toFixed(2),
      percentOf(one.busiestShare),
      one.name === inForce || one.agreement === undefined ? "" : percentOf(one.agreement),
      String(one.completed),
      first === undefined ? "" : percentOf(first),
    ]);
  });
  return table.toString();
}

/** Replicas and what requests were promised, where either was asked about: cost against goodput. */
function cost({ candidates }: WhatIfAnswer): string[] {
  if (!candidates.some(({ scaling, goodput }) => scaling !== undefined || goodput !== undefined)) return [];
  const heads = ["profile", "replica-hours", "goodput", "most", "up", "down", "back again"];
  const table = figureTable(heads, [36, 15, 10, 7, 6, 7, 12]);
  for (const { name, replicaHours, goodput, scaling } of candidates) {
    table.push([
      brokenName(name, 36),
      replicaHours.toFixed(3),
      goodput === undefined ? "-" : percentOf(goodput),
      ...(scaling === undefined
        ? ["", "", "", ""]
        : [scaling.replicasMax, scaling.ups, scaling.downs, scaling.oscillations].map(String)),
    ]);
  }
  return [
    wrapped("What it costs: hours of all replicas from order to end, and the part of requests within --slo"),
    table.toString(),
  ];
}

/** What became of attempts, where any failed. */
function faults({ candidates, requests }: WhatIfAnswer): string[] {
  if (!candidates.some(({ path }) => hasFaults(path))) return [];
  const stages = [...DONE, ...SIMULATED_TOTALS].map(([, { row = "" }]) => row);
  const table = figureTable(
    ["profile", "attempts failed", "retried", "retries denied", ...stages, "cut", "without an answer"],
    [PROFILE_WIDTH, 18, 9, 16, ...stages.map((name) => name.length + 2), 6, 19],
  );
  for (const one of candidates) {
    const { faults: failed, retries, retriesDenied, cuts } = one.path;
    const kinds = Object.entries(failed).map(([fault, count]) => `${count} ${fault}`);
    const unanswered = requests - one.completed - cuts;
    table.push([
      nameOf(one),
      kinds.length === 0 ? "0" : kinds.join("\n"),
      ...[retries, retriesDenied, ...doneOf(one.path), cuts, unanswered].map(String),
    ]);
  }
  const title =
    "What failed: attempts before the first token; answers that broke after it and went on elsewhere, or were cut";
  return [wrapped(title), table.toString()];
}

const sumOf = (counts: Partial<Record<string, number>>): number =>
  Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);

/** What stages did, without what they did not. */
const DONE = SIMULATED_COUNTS.filter(([, { before }]) => before === undefined);
const doneOf = (path: PathCounts): number[] => [
  ...DONE.map(([key]) => sumOf(path[key])),
  ...SIMULATED_TOTALS.map(([key]) => path[key]),
];

function hasFaults(path: PathCounts): boolean {
  const { faults: failed, cuts, timeouts } = path;
  const done = doneOf(path).reduce((sum, count) => sum + count, 0);
  return Object.keys(failed).length + done + cuts + timeouts > 0;
}

/** How sure each place in the order is. */
function rankingWords({ candidates, ranking, replicas }: WhatIfAnswer): string {
  if (ranking.first.length < 2) return "";
  const steps = ranking.before.slice(1).map((_, i) => {
    return `${candidates[i]!.name} before ${candidates[i + 1]!.name} ${percentOf(ranking.before[i]![i + 1]!)}`;
  });
  const from = replicas === 0 ? "requests resampled" : "replicas, requests resampled";
  return wrapped(`Order by mean E2E, and how likely it is (${from}): ${steps.join(", ")}`);
}

function differences(answer: WhatIfAnswer): string[] {
  const { candidates, inForce, replicas } = answer;
  const others = candidates.filter(({ name }) => name !== inForce);
  if (others.length === 0) return [];
  const table = figureTable(
    ["profile", ...METRICS.map(([, name]) => `mean ${name}`)],
    [PROFILE_WIDTH, ...METRICS.map(() => 24)],
  );
  for (const one of others) table.push([nameOf(one), ...METRICS.map(([metric]) => differenceCell(one, metric))]);
  const below = replicas === 0 ? "" : `; below, its ${WITHIN} prediction interval on the same drawn engines`;
  return [
    wrapped(`Difference to ${inForce}, both simulated, request by request: the estimate [95 % over requests]${below}`),
    table.toString(),
    ...(areMeansApart(answer) ? [wrapped(MEANS_APART)] : []),
  ];
}

function causes({ candidates, inForce }: WhatIfAnswer): string[] {
  const heads = ["profile", "requests", "outcome", "TTFT", "E2E", "of the mean"];
  const table = figureTable(heads, [PROFILE_WIDTH, 10, 28, 10, 10, 13]);
  for (const candidate of candidates) {
    for (const [i, one] of candidate.causes.slice(0, CAUSES_PRINTED).entries()) {
      const each = [
        signedMillis(one.ttftChangeMicros),
        signedMillis(one.e2eChangeMicros),
        signedMillis(one.shareMicros),
      ] as const;
      const name = i === 0 ? nameOf(candidate) : "";
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
  const heads = ["", "predicted mean", "observed mean", "mean", "p50", "p99", "median", "MAPE", "r", "pairs"];
  const table = figureTable(heads, [6, 11, 10, 10, 10, 10, 9, 9, 7, 7]);
  for (const [metric, name] of METRICS) {
    const error = modelError[metric];
    if (error !== undefined) table.push([name, ...errorCells(error)]);
  }
  return [
    `Model error: ${inForce} simulated against what really happened (median and MAPE: request by request)`,
    table.toString(),
    ...Object.entries(uncompared).map(([reason, count]) => wrapped(`${count} not compared: ${reason}`)),
  ].join("\n");
}

function coverage({ coverage: covered, inForce }: WhatIfAnswer): string[] {
  if (covered === undefined) return [];
  const table = figureTable(["observed / predicted", ...FIGURES], [PROFILE_WIDTH, 24, 24, 24]);
  for (const [metric, name] of METRICS) {
    const one: Coverage | undefined = covered[metric];
    if (one === undefined) continue;
    table.push([
      name,
      ...FIGURES.map((figure) => {
        const { observed, low, high, inside } = one[figure];
        return `${observed.toFixed(3)} ${inside ? "inside" : "OUTSIDE"}\n[${low.toFixed(3)}, ${high.toFixed(3)}]`;
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
  return [wrapped(`${error} ${verb} ${scenarios.join(", ")}: nothing like it was observed.`)];
}

/** The interval stands under its estimate; where others have one, its place stays empty. */
function distributionCells(
  figures: Distribution | undefined,
  intervals: FigureIntervals | undefined,
  hasIntervals: boolean,
): string[] {
  return FIGURES.map((figure) => {
    const range = intervals?.[figure];
    const below = range === undefined ? "" : `${millisOf(range.low)} to ${millisOf(range.high)}`;
    return `${figures === undefined ? "-" : millisOf(figures[figure])}${hasIntervals ? `\n${below === "" ? "-" : below}` : ""}`;
  });
}

function differenceCell(
  { difference: all, differenceInterval, exceedsNoise }: CandidateAnswer,
  metric: Metric,
): string {
  const [difference, interval] = [all[metric], differenceInterval[metric]];
  if (difference === undefined) return "-";
  const below = interval === undefined ? "" : `\n${signedMillis(interval.low)} to ${signedMillis(interval.high)}`;
  const noise = exceedsNoise[metric] === false ? "\nwithin chance" : "";
  return `${signedMillis(difference.mean)}\n[${signedMillis(difference.low)}, ${signedMillis(difference.high)}]${below}${noise}`;
}

function errorCells(error: PredictionError): string[] {
  return [
    millisOf(error.predictedMean),
    millisOf(error.observedMean),
    signedPercentOf(error.meanRelative),
    signedPercentOf(error.p50Relative),
    signedPercentOf(error.p99Relative),
    percentOf(error.medianApe),
    percentOf(error.mape),
    Number.isNaN(error.correlation) ? "-" : error.correlation.toFixed(3),
    String(error.pairs),
  ];
}
