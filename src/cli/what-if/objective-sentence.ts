import type { ObjectiveName } from "#core/objective-names.ts";
import type { Metric } from "#shadow/figure/metric.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { millisOf, percentOf } from "../output/figure-text.ts";

/** What an operator may want to be better; engine time is the same under every policy of a fleet. */
export type WhatIfObjective = Exclude<ObjectiveName, "cost">;

const METRIC_OF: Readonly<Record<string, Metric>> = { ttft: "ttftMicros", tpot: "tpotMicros", e2e: "e2eMicros" };
/** A difference below this is none that anybody would change a policy for. */
const WORTH = 0.01;

export interface ObjectiveValue {
  readonly candidate: CandidateAnswer;
  /** The less the better. */
  readonly loss: number;
  readonly low: number;
  readonly high: number;
}

/** The answer to "what should I do, if this is what I want?", in a sentence or two. */
export function objectiveSentence(answer: WhatIfAnswer, objective: WhatIfObjective): string {
  const values = answer.candidates.flatMap((candidate) => objectiveValueOf(candidate, objective) ?? []);
  const now = values.find(({ candidate }) => candidate.name === answer.inForce);
  const what = objective === "goodput" ? "goodput" : objective.replace(/^(\w+)-(\w+)$/, "$2 $1").toUpperCase();
  const named = what.replace("MEAN", "mean").replace("P99", "p99").replace("SESSION", "session completion time");
  if (now === undefined) return `${named}: nothing is known of ${answer.inForce}, which is in force.`;
  const words = (value: ObjectiveValue) =>
    objective === "goodput" ? percentOf(1 - value.loss) : `${millisOf(value.loss)} ms`;
  const others = values.filter(({ candidate }) => candidate.scenario === "" && candidate !== now.candidate);
  const best = others.toSorted((a, b) => a.loss - b.loss)[0];
  const gain = best === undefined ? 0 : now.loss - best.loss;
  const asWas = `${named} is ${words(now)} under ${answer.inForce}`;
  if (best === undefined || gain <= WORTH * now.loss) {
    const tried = others.length === 0 ? "no other profile was asked about" : `none of ${others.length} others has less`;
    const none = objective === "goodput" ? tried.replace("less", "more") : tried;
    return `${answer.inForce} stays best: ${asWas}, and ${none}.${otherwise(answer, values, now, { named, words, isGoodput: objective === "goodput" })}`;
  }
  const change = `${named} of ${words(best)} in place of ${words(now)} under ${answer.inForce}`;
  const isKnown = best.low < best.high && now.low < now.high;
  if (isKnown && best.high < now.low) return `${best.candidate.name} is better: ${change}, beyond both intervals.`;
  const doubt = isKnown ? "their intervals overlap" : "there are no intervals around both";
  return `${best.candidate.name} may be better: ${change}, but ${doubt}; try it in a rollout before you change anything.`;
}

/** What another fleet would give, where policy gives nothing. */
function otherwise(
  { inForce }: WhatIfAnswer,
  values: readonly ObjectiveValue[],
  now: ObjectiveValue,
  {
    named,
    words,
    isGoodput,
  }: {
    readonly named: string;
    readonly words: (value: ObjectiveValue) => string;
    readonly isGoodput: boolean;
  },
): string {
  const scenarios = values.filter(
    ({ candidate }) => candidate.scenario !== "" && candidate.name.startsWith(`${inForce}, `),
  );
  const best = scenarios.toSorted((a, b) => a.loss - b.loss)[0];
  if (best === undefined)
    return ` If that is too ${isGoodput ? "little" : "much"}, ask about more engines: --endpoints.`;
  if (now.loss - best.loss <= WORTH * now.loss) return "";
  return ` The engines are the limit: with ${best.candidate.scenario} ${named} would be ${words(best)}.`;
}

/** What a candidate gives of it; undefined where that is not known. */
export function objectiveValueOf(candidate: CandidateAnswer, objective: WhatIfObjective): ObjectiveValue | undefined {
  if (objective === "goodput") {
    if (candidate.goodput === undefined) return undefined;
    const loss = 1 - candidate.goodput;
    return { candidate, loss, low: loss, high: loss };
  }
  const [name = "", figure] = objective.split("-");
  const of = figure === "p99" ? "p99" : "mean";
  if (name === "session") {
    const loss = candidate.sessions?.[of];
    return loss === undefined ? undefined : { candidate, loss, low: loss, high: loss };
  }
  const metric = METRIC_OF[name]!;
  const interval = candidate.intervals[metric]?.[of];
  if (interval !== undefined) return { candidate, loss: interval.expected, low: interval.low, high: interval.high };
  const loss = candidate.predicted[metric]?.[of];
  return loss === undefined ? undefined : { candidate, loss, low: loss, high: loss };
}
