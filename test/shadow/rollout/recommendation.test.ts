import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesignStudy, FigureStudy } from "#shadow/rollout/design-study.ts";
import { isBiased, NOTHING_KNOWN, recommended } from "#shadow/rollout/recommendation.ts";

const MILLI = 1000;

const UNBIASED: FigureStudy = {
  truth: 100 * MILLI,
  estimate: 100 * MILLI,
  bias: 0,
  biasError: MILLI,
  runError: MILLI,
  varianceLeft: 1,
  hours: 5,
  hoursAdjusted: 1,
  powers: [0.8],
  powersAdjusted: [1],
  hoursRange: { low: 0.5, high: 1 },
  powerRanges: [{ low: 0.5, high: 1 }],
  detectable: [50 * MILLI],
  detectableAdjusted: [10 * MILLI],
  clusters: 100,
  valuesPerHour: 10,
};

function studyOf(name: string, figure: Partial<FigureStudy>): DesignStudy {
  const one: FigureStudy = { ...UNBIASED, ...figure };
  const figures = {
    "ttft.mean": UNBIASED,
    "tpot.mean": UNBIASED,
    "e2e.mean": one,
  } as unknown as DesignStudy["figures"];
  return { name, design: { kind: "shadow", windowMicros: 1 }, stages: 1, requests: 100, figures };
}

const OF = ["e2e.mean", 1000 * MILLI] as const;
const ASKED = ["e2e.mean", () => 1000 * MILLI] as const;

test("the quickest design that shows the truth is recommended, not one that shows another thing sooner", () => {
  const split = studyOf("split", { bias: -150 * MILLI, estimate: -50 * MILLI, hours: 0.2 });
  const slow = studyOf("long windows", { hours: 9 });
  const near = studyOf("near", { hours: 5.5, bias: 2 * MILLI });
  const quick = studyOf("quick", { hours: 5, bias: 10 * MILLI });
  assert.ok(isBiased(split, ...OF));
  assert.ok(!isBiased(quick, ...OF));
  assert.deepEqual(recommended([split, slow, quick], ...ASKED), { design: "quick", hours: 5, warning: "" });
  assert.deepEqual(recommended([split, slow, quick, near], ...ASKED).design, "near", "as long, and with less bias");
});

test("a design that is wrong about another mean is not taken for right about this one", () => {
  const lucky = studyOf("lucky", { hours: 1 });
  const figures = { ...lucky.figures, "tpot.mean": { ...UNBIASED, bias: -150 * MILLI } };
  assert.equal(recommended([{ ...lucky, figures }, studyOf("right", { hours: 5 })], ...ASKED).design, "right");
});

test("what cannot be known is not recommended: two pools, few tenants, figures without a number", () => {
  const switchback = studyOf("switchback", { hours: 50 });
  const as = (name: string, design: DesignStudy["design"], figure: Partial<FigureStudy>) => ({
    ...studyOf(name, { hours: 1, ...figure }),
    design,
  });
  const pools = as("pools", { kind: "pools", windowMicros: 1, by: "session", label: "pool" }, {});
  const tenants = (clusters: number) => as("tenants", { kind: "split", windowMicros: 1, by: "tenant" }, { clusters });
  const empty = studyOf("empty", { estimate: NaN, bias: NaN, biasError: NaN, hours: 1 });
  assert.ok(isBiased(empty, ...OF), "NaN is no proof");
  for (const other of [pools, tenants(2), empty]) {
    assert.equal(recommended([other, switchback], ...ASKED).design, "switchback");
    const { hours, warning } = recommended([other], ...ASKED);
    assert.deepEqual([hours, warning], [undefined, NOTHING_KNOWN]);
  }
  assert.equal(recommended([tenants(60), switchback], ...ASKED).design, "tenants");
});

test("what has too few values for its error to be known is neither called biased nor recommended", () => {
  const few = studyOf("few", { bias: 300 * MILLI, biasError: undefined, runError: undefined, hours: 0.1 });
  assert.ok(!isBiased(few, ...OF));
  assert.equal(recommended([few, studyOf("right", { hours: 50 })], ...ASKED).design, "right");
  // Nor where the others are biased.
  const biased = studyOf("biased", { bias: 400 * MILLI });
  assert.equal(recommended([few, biased], ...ASKED).design, "biased");
  assert.match(recommended([few, biased], ...ASKED).warning, /every design whose bias is known is biased/);
  assert.deepEqual(recommended([few], ...ASKED), { design: "few", hours: undefined, warning: NOTHING_KNOWN });
});

test("a bias is one that is more than chance, and more than a fifth of the truth", () => {
  assert.ok(!isBiased(studyOf("chance", { bias: 30 * MILLI, biasError: 6 * MILLI }), ...OF));
  assert.ok(isBiased(studyOf("sure", { bias: 30 * MILLI, biasError: 4 * MILLI }), ...OF));
  // Where there is hardly a difference, a hundredth of the control's figure.
  assert.ok(!isBiased(studyOf("no effect", { truth: 0, bias: 11 * MILLI }), ...OF));
  assert.ok(isBiased(studyOf("no effect", { truth: 0, bias: 13 * MILLI }), ...OF));
});

test("where nothing shows the truth or nothing is done in time, that is reported", () => {
  const [worse, bad] = [300, 200].map((bias) => studyOf(`bias of ${bias}`, { bias: bias * MILLI }));
  assert.equal(recommended([worse!, bad!], ...ASKED).design, "bias of 200");
  assert.match(recommended([worse!, bad!], ...ASKED).warning, /every design is biased/);
  const [coarse, fine] = [9, 3].map((detectable) =>
    studyOf(`finds ${detectable}`, { hours: undefined, detectable: [detectable * MILLI] }),
  );
  assert.equal(recommended([coarse!, fine!], ...ASKED).design, "finds 3");
  assert.match(recommended([coarse!, fine!], ...ASKED).warning, /within two months/);
});
