import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { addBlock, adjustedEstimate, noBlocks, plainEstimate } from "#core/rollout/judge/block-differences.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { designStudy } from "#shadow/rollout/design-study.ts";
import { NOTHING_KNOWN, recommended } from "#shadow/rollout/recommendation.ts";
import type { FigureSample, RolloutSample } from "#shadow/job/rollout-sample.ts";

const WINDOW_MICROS = 10_000_000;
const POOLS: Design = { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool" };
const SWITCHBACK: Design = { kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: 0 };
const EFFECT = 20_000;

/** Rollouts of 60 windows that each show the effect, but for what a whole rollout is off by. */
function samplesOf(runs: number, offMicros: number): RolloutSample[] {
  return Array.from({ length: runs }, (_, run) => {
    const random = randomFor(5, run);
    const off = offMicros * (run % 2 === 0 ? 1 : -1);
    const blocks = noBlocks();
    for (let i = 0; i < 60; i++) addBlock(blocks, EFFECT + off + 60_000 * (random.next() - 0.5), 0);
    const figure: FigureSample = { plain: plainEstimate(blocks), adjusted: adjustedEstimate(blocks), blocks };
    const keys = ["ttft", "tpot", "e2e"].flatMap((metric) => [`${metric}.mean`, `${metric}.p99`]);
    const figures = Object.fromEntries(keys.map((key) => [key, figure])) as unknown as RolloutSample["figures"];
    return { figures, requests: 6_000, failed: [0, 0], takenBack: false };
  });
}

function planned(design: Design, offMicros: number) {
  const samples = samplesOf(8, offMicros);
  const asked = { level: 0.05, primary: "e2e.mean" as const, power: 0.8, hours: [1] };
  const named = { name: "case", design, stages: 1 };
  return designStudy(named, samples[0]!, samples, 60 * WINDOW_MICROS, asked).figures["e2e.mean"];
}

test("pools whose rollouts are further apart than their windows lets expect are planned longer, by as much", () => {
  const [alike, apart, switchback] = [planned(POOLS, 0), planned(POOLS, 8_000), planned(SWITCHBACK, 8_000)];
  assert.ok(apart.runError! > 2.5 * alike.runError!, `${apart.runError} ${alike.runError}`);
  // Whole rollouts are 8 ms from their middle; what one of them shows differs by that.
  assert.ok(Math.abs(apart.runError! - 8_000) < 2_500, `${apart.runError}`);
  assert.ok(apart.hours! > 4 * alike.hours!, `${apart.hours} ${alike.hours}`);
  assert.ok(apart.detectable[0]! > 2 * alike.detectable[0]!);
  // A switchback draws its order anew for every two windows.
  assert.ok(switchback.runError! < 1.5 * alike.runError!);
});

test("tenants become no more with time: a split by them finds as much in a thousand hours as in one, or nothing", () => {
  const figuresOf = (tenants: number, by: "tenant" | "session") => {
    const plain = { count: tenants, mean: 30_000, deviation: 40_000, degrees: tenants / 2 - 1 };
    const figure: FigureSample = { plain, adjusted: plain, blocks: undefined };
    const keys = ["ttft", "tpot", "e2e"].flatMap((metric) => [`${metric}.mean`, `${metric}.p99`]);
    const figures = Object.fromEntries(keys.map((key) => [key, figure])) as unknown as RolloutSample["figures"];
    const samples = Array.from({ length: 4 }, () => ({ figures, requests: 6_000, failed: [0, 0], takenBack: false }));
    const asked = { level: 0.05, primary: "e2e.mean" as const, power: 0.8, hours: [1, 1000] };
    const named = { name: "case", design: { kind: "split", windowMicros: WINDOW_MICROS, by } as const, stages: 1 };
    return designStudy(named, samples[0]!, samples, 3600 * 1_000_000, asked).figures["e2e.mean"];
  };
  const [few, many, sessions] = [figuresOf(12, "tenant"), figuresOf(60, "tenant"), figuresOf(60, "session")];
  assert.deepEqual([few.hours, few.powers, few.detectable], [undefined, [0, 0], [Infinity, Infinity]]);
  assert.equal(many.powers[0], many.powers[1]);
  assert.equal(many.detectable[0], many.detectable[1]);
  assert.ok(many.powers[0]! > 0.8 && many.hours === 1, `${many.powers[0]} ${many.hours}`);
  assert.ok(sessions.powers[1]! > sessions.powers[0]! || sessions.powers[0] === 1);
  assert.ok(sessions.detectable[1]! < sessions.detectable[0]! / 10);
});

for (const windows of [1, 2, 3]) {
  test(`of rollouts with ${windows} blocks each, the same in all, errors are ${windows < 3 ? "not " : ""}known`, () => {
    const samples = Array.from({ length: 40 }, (_, run): RolloutSample => {
      const random = randomFor(9, run);
      const blocks = noBlocks();
      for (let i = 0; i < windows; i++) {
        // What the order of arms makes of the two windows is all that there is beside the effect.
        const order = random.next() < 0.5 ? 1 : -1;
        addBlock(blocks, EFFECT + 10_000 * order * (i + 1) + 500 * i * i, 9_000 * order * (i + 1));
      }
      const figure: FigureSample = { plain: plainEstimate(blocks), adjusted: adjustedEstimate(blocks), blocks };
      const keys = ["ttft", "tpot", "e2e"].flatMap((metric) => [`${metric}.mean`, `${metric}.p99`]);
      const figures = Object.fromEntries(keys.map((key) => [key, figure])) as unknown as RolloutSample["figures"];
      return { figures, requests: 1_000, failed: [0, 0], takenBack: false };
    });
    const asked = { level: 0.05, primary: "e2e.mean" as const, power: 0.8, hours: [24] };
    const named = { name: "case", design: SWITCHBACK, stages: 1 };
    const truth = { ...samples[0]!, figures: samplesOf(1, 0)[0]!.figures };
    const study = designStudy(named, truth, samples, windows * 2 * WINDOW_MICROS, asked);
    const { estimate, bias, clusters, ...rest } = study.figures["e2e.mean"];
    assert.equal(clusters, windows);
    assert.ok(Number.isFinite(estimate) && Number.isFinite(bias));
    const { biasError, runError, varianceLeft, hours, hoursAdjusted, detectable, detectableAdjusted, powers } = rest;
    if (windows < 3) {
      const known = [biasError, runError, varianceLeft, hours, hoursAdjusted].filter((one) => one !== undefined);
      assert.deepEqual([known, detectable, detectableAdjusted, powers], [[], [], [], []]);
    } else {
      for (const one of [biasError, runError, varianceLeft, detectableAdjusted[0]]) assert.ok(one! > 0, String(one));
    }
    const { design, warning } = recommended([study], "e2e.mean", () => EFFECT);
    assert.deepEqual([design, warning === NOTHING_KNOWN], ["case", windows < 3]);
  });
}

test("of a canary whose arm has a single request in one of its rollouts, errors are not known, and no number's lack", () => {
  const canary: Design = { kind: "split", windowMicros: WINDOW_MICROS, by: "session" };
  const samples = [30, Number.NaN].map((deviation): RolloutSample => {
    const plain = { count: 100, mean: EFFECT, deviation, degrees: 4 };
    const figure: FigureSample = { plain, adjusted: plain, blocks: undefined };
    const keys = ["ttft", "tpot", "e2e"].flatMap((metric) => [`${metric}.mean`, `${metric}.p99`]);
    const figures = Object.fromEntries(keys.map((key) => [key, figure])) as unknown as RolloutSample["figures"];
    return { figures, requests: 100, failed: [0, 0], takenBack: false };
  });
  const asked = { level: 0.05, primary: "e2e.mean" as const, power: 0.8, hours: [24] };
  const study = designStudy({ name: "case", design: canary, stages: 1 }, samples[0]!, samples, WINDOW_MICROS, asked);
  const { biasError, runError, varianceLeft, hours, powers } = study.figures["e2e.mean"];
  assert.deepEqual(
    [biasError, runError, varianceLeft, hours, powers],
    [undefined, undefined, undefined, undefined, []],
  );
  assert.equal(recommended([study], "e2e.mean", () => EFFECT).warning, NOTHING_KNOWN);
});
