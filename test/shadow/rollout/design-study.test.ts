import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { addBlock, adjustedEstimate, noBlocks, plainEstimate } from "#core/rollout/judge/block-differences.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { designStudy } from "#shadow/rollout/design-study.ts";
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
  assert.ok(apart.runError > 2.5 * alike.runError, `${apart.runError} ${alike.runError}`);
  // Whole rollouts are 8 ms from their middle; what one of them shows differs by that.
  assert.ok(Math.abs(apart.runError - 8_000) < 2_500, `${apart.runError}`);
  assert.ok(apart.hours! > 4 * alike.hours!, `${apart.hours} ${alike.hours}`);
  assert.ok(apart.detectable[0]! > 2 * alike.detectable[0]!);
  // A switchback draws its order anew for every two windows.
  assert.ok(switchback.runError < 1.5 * alike.runError);
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
