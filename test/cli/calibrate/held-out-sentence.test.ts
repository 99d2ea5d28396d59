import assert from "node:assert/strict";
import { test } from "node:test";
import { heldOutSentence } from "#cli/calibrate/held-out-sentence.ts";
import { predictionError } from "#shadow/figure/figures.ts";

const OBSERVED = Float64Array.of(1_000, 2_000, 3_000);

function heldOut(ttftFactor: number | undefined, e2eFactor: number | undefined) {
  const off = (factor: number | undefined) =>
    factor === undefined
      ? undefined
      : predictionError(
          OBSERVED.map((value) => factor * value),
          OBSERVED,
        );
  return {
    requests: 3,
    cachedRelative: undefined,
    ttftMicros: off(ttftFactor),
    tpotMicros: undefined,
    e2eMicros: off(e2eFactor),
  };
}

const lineOf = (...factors: Parameters<typeof heldOut>) => heldOutSentence(heldOut(...factors)).replaceAll("\n", " ");

test("what is predicted well has its error alone; what is far off is named as not to be relied on", () => {
  const near = "Requests held out: the model is off by +5.0 % in mean E2E, -8.0 % in mean TTFT.";
  assert.equal(lineOf(0.92, 1.05), near);
  assert.match(
    lineOf(0.6, 1.05),
    /-40\.0 % in mean TTFT\. More than 10 % off in TTFT: do not rely on its predictions;/,
  );
  assert.match(lineOf(0.6, 1.2), /More than 10 % off in E2E and TTFT: do not rely on their predictions;/);
});

test("where nothing was held out, the error is not known and none is stated", () => {
  assert.equal(lineOf(undefined, undefined), "No request was held out, so the error of this fit is not known.");
});
