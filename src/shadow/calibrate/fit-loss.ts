import type { ModelError } from "./model-error.ts";

/**
 * How far off, over TTFT, TPOT and E2E: the mean of |error of the mean| and of the bounded error of single requests. Both
 * count: answers are about means, and a mean may be right by chance. Bounded, since an answer that came in one burst has a
 * time per token near 0, and whoever predicts less would win by it. Infinity without a figure of each kind.
 */
export function fitLoss({ ttftMicros, tpotMicros, e2eMicros }: ModelError): number {
  const parts = [ttftMicros, tpotMicros, e2eMicros].map((error) =>
    error === undefined ? Infinity : (Math.abs(error.meanRelative) + error.boundedError) / 2,
  );
  return parts.reduce((sum, part) => sum + part, 0) / parts.length;
}
