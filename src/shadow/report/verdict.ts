import { METRICS, type Metric } from "../figure/metric.ts";
import type { CandidateAnswer, WhatIfAnswer } from "../question/what-if.ts";
import { percent, signedPercent } from "#page/part/format.ts";

/** A model that is further off than this should be calibrated before it is asked. */
const ERROR_MAX = 0.25;
/** Further candidates that are named where they differ. */
const OTHERS_NAMED_MAX = 3;

const METRIC_NAMES: Readonly<Record<Metric, string>> = {
  ttftMicros: "TTFT",
  tpotMicros: "TPOT",
  e2eMicros: "E2E",
};

/**
 * The answer: one sentence on mean TTFT, TPOT and E2E, then how far it is to be trusted. No surer than the intervals and
 * the model's error allow. Plain text. `guessedEngine`: the engine simulated, where nothing shows that it is the
 * traffic's.
 */
export function verdict(answer: WhatIfAnswer, guessedEngine?: string): string {
  const { candidates, inForce, modelError } = answer;
  const base = candidates.find(({ name }) => name === inForce);
  const others = candidates.filter(({ name, scenario }) => name !== inForce && scenario === "");
  const [best] = others;
  const guess = guessedEngine === undefined ? [] : [`The engine, ${guessedEngine}, is a guess: name the real one.`];
  if (base === undefined || best === undefined)
    return [`Only ${inForce} was simulated as things were.`, ...guess].join(" ");
  if (METRICS.every((metric) => best.difference[metric] === undefined))
    return [`No request can be compared with ${inForce}.`, ...guess].join(" ");
  const sentence = compared(best, others.slice(1), base);
  return [sentence, ...lead(answer, best), trustIn(modelError, inForce), ...caution(answer, best), ...guess].join(" ");
}

function compared(best: CandidateAnswer, others: readonly CandidateAnswer[], base: CandidateAnswer): string {
  const e2e = best.exceedsNoise.e2eMicros === true ? (best.difference.e2eMicros?.mean ?? 0) : 0;
  const also = others
    .map((one) => ({ one, metrics: METRICS.toReversed().filter((metric) => one.exceedsNoise[metric] === true) }))
    .filter(({ metrics }) => metrics.length > 0);
  const named = also
    .slice(0, OTHERS_NAMED_MAX)
    .map(({ one, metrics }) => `${one.name} ${metrics.map((metric) => change(one, base, metric)).join(", ")}`);
  const more = also.length > named.length ? `; ${also.length - named.length} more` : "";
  const rest =
    named.length === 0 ? "" : `; ${also.length === 1 ? "differs" : "differ"} beyond chance: ${named.join("; ")}${more}`;
  const figures = `${shares(best, base)}${rest}`;
  if (e2e < 0) return `${best.name} would have been better than ${base.name} in E2E: ${figures}.`;
  if (e2e > 0) return `${base.name} stays best in E2E; next is ${best.name}: ${figures}.`;
  if (METRICS.some((metric) => best.exceedsNoise[metric] === true))
    return `${best.name} is the nearest to a gain over ${base.name}, not in E2E beyond chance: ${figures}.`;
  if (also.length > 0)
    return `No candidate is better than ${base.name} in E2E beyond chance; nearest is ${best.name}: ${figures}.`;
  return `No candidate differs from ${base.name} beyond chance in TTFT, TPOT or E2E; nearest to a gain is ${best.name}: ${figures}.`;
}

/** "mean TTFT +12.0 % [+8.0 %, +16.0 %]; within chance: E2E -0.2 %": what counts first. */
function shares(one: CandidateAnswer, base: CandidateAnswer): string {
  const known = METRICS.toReversed().filter((metric) => one.difference[metric] !== undefined);
  const beyond = known.filter((metric) => one.exceedsNoise[metric] === true);
  const within = known.filter((metric) => one.exceedsNoise[metric] !== true).map((metric) => change(one, base, metric));
  const counted = beyond.map((metric) => `${change(one, base, metric)}${rangeOf(one, base, metric)}`);
  if (counted.length === 0) return `mean ${within.join(", ")} (within chance)`;
  return [
    `mean ${counted.join(", ")}`,
    ...(within.length === 0 ? [] : [`within chance: mean ${within.join(", ")}`]),
  ].join("; ");
}

function change(one: CandidateAnswer, base: CandidateAnswer, metric: Metric): string {
  return `${METRIC_NAMES[metric]} ${signedPercent(one.difference[metric]!.mean / (base.predicted[metric]?.mean ?? NaN))}`;
}

function rangeOf(one: CandidateAnswer, base: CandidateAnswer, metric: Metric): string {
  const mean = base.predicted[metric]?.mean ?? NaN;
  const difference = one.difference[metric]!;
  const may = one.differenceInterval[metric] ?? difference;
  const [low, high] = [Math.min(difference.low, may.low), Math.max(difference.high, may.high)];
  return ` [${signedPercent(low / mean)}, ${signedPercent(high / mean)}]`;
}

function lead({ candidates, ranking }: WhatIfAnswer, best: CandidateAnswer): string[] {
  const likely = ranking.first[candidates.indexOf(best)];
  if (best.exceedsNoise.e2eMicros !== true || (best.difference.e2eMicros?.mean ?? 0) >= 0 || likely === undefined)
    return [];
  return [`It has the lowest mean E2E of all with a probability of ${percent(likely, 0)}.`];
}

/** A difference below the model's own error. */
function caution({ modelError, candidates, inForce }: WhatIfAnswer, best: CandidateAnswer): string[] {
  const base = candidates.find(({ name }) => name === inForce)?.predicted.e2eMicros?.mean ?? NaN;
  const error = modelError?.e2eMicros?.meanRelative;
  if (error === undefined || best.exceedsNoise.e2eMicros !== true) return [];
  const isSmall = Math.abs((best.difference.e2eMicros?.mean ?? NaN) / base) < Math.abs(error);
  return isSmall ? ["The difference is less than the model's own error, which mostly hits both alike."] : [];
}

function trustIn(modelError: WhatIfAnswer["modelError"], inForce: string): string {
  const errors = METRICS.toReversed().flatMap((metric) => {
    const error = modelError?.[metric]?.meanRelative;
    return error === undefined ? [] : [{ metric, error }];
  });
  if (errors.length === 0) return "How far the model can be trusted is not known: this traffic was not observed.";
  const figures = errors.map(({ metric, error }) => `${METRIC_NAMES[metric]} ${signedPercent(error)}`);
  const off = `The model's own error on the means of ${inForce} is: ${figures.join(", ")}.`;
  const isFar = errors.some(({ error }) => Math.abs(error) > ERROR_MAX);
  return isFar ? `${off} Calibrate an engine on this trace before you believe it.` : off;
}
