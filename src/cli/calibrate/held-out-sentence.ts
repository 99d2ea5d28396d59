import type { ModelError } from "#shadow/calibrate/model-error.ts";
import { signedPercentOf, wrapped } from "../output/figure-text.ts";

const METRICS = [
  ["e2eMicros", "E2E"],
  ["tpotMicros", "TPOT"],
  ["ttftMicros", "TTFT"],
] as const;

/** Mean errors beyond which predictions of single figures are of little use. */
const FAR_SHARE = 0.1;

/** The error on what was not fitted in one sentence, and what makes it smaller where it is large. */
export function heldOutSentence(heldOut: ModelError): string {
  const known = METRICS.flatMap(([metric, label]) => {
    const one = heldOut[metric];
    return one === undefined ? [] : [{ label, off: one.meanRelative }];
  });
  if (known.length === 0) return "No request was held out, so the error of this fit is not known.";
  const parts = known.map(({ label, off }) => `${signedPercentOf(off)} in mean ${label}`);
  const far = known.filter(({ off }) => Math.abs(off) > FAR_SHARE).map(({ label }) => label);
  const advice =
    far.length === 0
      ? []
      : [
          `More than ${100 * FAR_SHARE} % off in ${far.join(" and ")}: do not rely on ${far.length === 1 ? "its" : "their"} ` +
            "predictions; more requests, several traces, or engines that share their machine with nothing else help.",
        ];
  return wrapped([`Requests held out: the model is off by ${parts.join(", ")}.`, ...advice].join(" "));
}
