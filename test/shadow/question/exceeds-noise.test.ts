import assert from "node:assert/strict";
import { test } from "node:test";
import { METRICS } from "#shadow/figure/metric.ts";
import { exceedsNoise } from "#shadow/question/uncertainty.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { caseSetting, caseWorkload, namedProfile } from "./what-if-case.ts";

const difference = (low: number, high: number) => ({ pairs: 9, mean: (low + high) / 2, low, high, belowZero: 0 });

test("a difference is more than chance where no interval holds 0", () => {
  assert.equal(exceedsNoise(undefined, undefined), undefined);
  assert.equal(exceedsNoise(difference(1, 2), undefined), true);
  assert.equal(exceedsNoise(difference(-2, -1), { low: -3, high: -0.5 }), true);
  assert.equal(exceedsNoise(difference(-1, 2), { low: 1, high: 2 }), false);
  assert.equal(exceedsNoise(difference(1, 2), { low: -1, high: 4 }), false);
  assert.equal(exceedsNoise(difference(0, 0), { low: 0, high: 0 }), false);
});

test("a profile under another name is in the noise, a hopeless one is not", async () => {
  const residuals = { windowMicros: 1e6, windows: [[0]], levelError: 0.05, delayError: 0, prefillError: 0 };
  const { candidates } = await whatIf({
    setting: { ...caseSetting(caseWorkload()), residuals },
    inForce: namedProfile("gnomon"),
    candidates: [{ ...namedProfile("gnomon"), name: "twin" }, namedProfile("always-busiest")],
    observed: undefined,
    replicas: 4,
    threadsMax: 1,
  });
  const of = (name: string) => candidates.find((one) => one.name === name)!.exceedsNoise;
  for (const metric of METRICS) {
    assert.equal(of("gnomon")[metric], false);
    assert.equal(of("twin")[metric], false);
  }
  assert.equal(of("always-busiest").e2eMicros, true);
});
