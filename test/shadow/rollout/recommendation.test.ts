import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesignStudy, FigureStudy } from "#shadow/rollout/design-study.ts";
import { isBiased, recommended } from "#shadow/rollout/recommendation.ts";

const MILLI = 1000;

function studyOf(name: string, figure: Partial<FigureStudy>): DesignStudy {
  const one: FigureStudy = {
    truth: 100 * MILLI,
    estimate: 100 * MILLI,
    bias: 0,
    biasError: MILLI,
    runError: MILLI,
    varianceLeft: 1,
    hours: 5,
    hoursAdjusted: 1,
    detectable: [50 * MILLI],
    detectableAdjusted: [10 * MILLI],
    valuesPerHour: 10,
    ...figure,
  };
  const figures = { "e2e.mean": one } as unknown as DesignStudy["figures"];
  return { name, design: { kind: "shadow", windowMicros: 1 }, stages: 1, requests: 100, figures };
}

const OF = ["e2e.mean", 1000 * MILLI] as const;

test("the quickest design that shows the truth is recommended, not one that shows another thing sooner", () => {
  const split = studyOf("split", { bias: -150 * MILLI, estimate: -50 * MILLI, hours: 0.2 });
  const slow = studyOf("long windows", { hours: 9 });
  const near = studyOf("near", { hours: 5.5, bias: 2 * MILLI });
  const quick = studyOf("quick", { hours: 5, bias: 10 * MILLI });
  assert.ok(isBiased(split, ...OF));
  assert.ok(!isBiased(quick, ...OF));
  assert.deepEqual(recommended([split, slow, quick], ...OF), { design: "quick", hours: 5, warning: "" });
  assert.deepEqual(recommended([split, slow, quick, near], ...OF).design, "near", "as long, and with less bias");
});

test("pools, which halve the fleet, must be twice as quick", () => {
  const switchback = studyOf("switchback", { hours: 5 });
  const pools = (hours: number): DesignStudy => ({
    ...studyOf("pools", { hours }),
    design: { kind: "pools", windowMicros: 1, by: "session", label: "pool" },
  });
  assert.equal(recommended([switchback, pools(4)], ...OF).design, "switchback");
  assert.equal(recommended([switchback, pools(1.5)], ...OF).design, "pools");
});

test("a bias is one that is more than chance, and more than a fifth of the truth", () => {
  assert.ok(!isBiased(studyOf("chance", { bias: 30 * MILLI, biasError: 6 * MILLI }), ...OF));
  assert.ok(isBiased(studyOf("sure", { bias: 30 * MILLI, biasError: 4 * MILLI }), ...OF));
  // Where there is hardly a difference, a hundredth of the control's figure.
  assert.ok(!isBiased(studyOf("no effect", { truth: 0, bias: 11 * MILLI }), ...OF));
  assert.ok(isBiased(studyOf("no effect", { truth: 0, bias: 13 * MILLI }), ...OF));
});

test("where nothing shows the truth or nothing is done in time, it says so", () => {
  const [worse, bad] = [300, 200].map((bias) => studyOf(`bias of ${bias}`, { bias: bias * MILLI }));
  assert.equal(recommended([worse!, bad!], ...OF).design, "bias of 200");
  assert.match(recommended([worse!, bad!], ...OF).warning, /every design is biased/);
  const [coarse, fine] = [9, 3].map((detectable) =>
    studyOf(`finds ${detectable}`, { hours: undefined, detectable: [detectable * MILLI] }),
  );
  assert.equal(recommended([coarse!, fine!], ...OF).design, "finds 3");
  assert.match(recommended([coarse!, fine!], ...OF).warning, /within two months/);
});
