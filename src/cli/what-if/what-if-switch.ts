import { COVERAGE } from "#shadow/figure/interval.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { millisOf, signedPercentOf } from "../output/figure-text.ts";

/**
 * What changing over from another router is predicted to bring: what was measured there, and the difference that the
 * simulations of its policy and of ours show on the same engines. Undefined where nothing can be compared.
 */
export function switchSentence(answer: WhatIfAnswer, router: string): string | undefined {
  const { candidates, inForce, measured } = answer;
  const before = measured?.e2eMicros?.mean;
  const to = candidates.find(({ name, scenario }) => name !== inForce && scenario === "");
  const difference = to?.difference.e2eMicros?.mean;
  if (before === undefined || to === undefined || difference === undefined) return undefined;
  const interval = to.differenceInterval.e2eMicros;
  const within =
    interval === undefined
      ? ""
      : ` (${100 * COVERAGE} %: ${millisOf(before + interval.low)} to ${millisOf(before + interval.high)})`;
  const verdict = to.exceedsNoise.e2eMicros === false ? ", which is within chance" : "";
  return `Mean E2E under ${router}, measured: ${millisOf(before)} ms. Under ${to.name} instead: ${millisOf(before + difference)} ms${within}, ${signedPercentOf(difference / before)}${verdict}.`;
}
