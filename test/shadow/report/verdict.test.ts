import assert from "node:assert/strict";
import { test } from "node:test";
import { METRICS, type Metric, perMetric } from "#shadow/figure/metric.ts";
import { newPathCounts } from "#sim/result/path-counts.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { verdict } from "#shadow/report/verdict.ts";

/** Mean differences in per cent of a mean of 100, and whether each is beyond chance. */
type Differences = Partial<Record<Metric, readonly [percent: number, isBeyond: boolean]>>;

function candidate(name: string, differences: Differences): CandidateAnswer {
  const of = (metric: Metric) => differences[metric] ?? ([0, false] as const);
  const figures = { count: 9, mean: 100, min: 1, p50: 100, p90: 100, p95: 100, p99: 100, max: 100 };
  return {
    name,
    scenario: "",
    completed: 9,
    path: newPathCounts(),
    predicted: perMetric(() => figures),
    intervals: perMetric(() => undefined),
    sessions: undefined,
    backlog: undefined,
    hitRatio: 0,
    imbalance: 1,
    busiestShare: 1,
    replicaHours: 1,
    goodput: undefined,
    scaling: undefined,
    difference: perMetric((metric) => {
      const [mean, isBeyond] = of(metric);
      const reach = isBeyond ? 1 : Math.abs(mean) + 1;
      return { pairs: 9, mean, low: mean - reach, high: mean + reach, belowZero: 0 };
    }),
    differenceInterval: perMetric(() => undefined),
    exceedsNoise: perMetric((metric) => of(metric)[1]),
    agreement: 1,
    causes: [],
    regret: undefined,
  };
}

function told(others: readonly CandidateAnswer[], guess?: string): string {
  const answer: WhatIfAnswer = {
    inForce: "own",
    requests: 9,
    replicas: 0,
    modelError: undefined,
    uncompared: {},
    coverage: undefined,
    candidates: [...others, candidate("own", {})],
    ranking: { draws: 1, first: [...others.map(() => 0.5), 0.5], before: [] },
  };
  return verdict(answer, guess);
}

test("a difference in any of TTFT, TPOT and E2E is named: none is lost behind the others", () => {
  for (const metric of METRICS) {
    const name = { ttftMicros: "TTFT", tpotMicros: "TPOT", e2eMicros: "E2E" }[metric];
    const first = told([candidate("a", { [metric]: [12, true] })]);
    assert.doesNotMatch(first, /No candidate differs/);
    assert.ok(first.includes(`mean ${name} +12.0 % [+11.0 %, +13.0 %]; within chance: mean `), first);
    const second = told([candidate("b", {}), candidate("a", { [metric]: [12, true] })]);
    assert.doesNotMatch(second, /No candidate differs/);
    assert.ok(second.includes(`differs beyond chance: a ${name} +12.0 %`), second);
  }
});

test("no difference beyond chance is reported of all three, with the estimates", () => {
  const text = told([candidate("a", { ttftMicros: [3, false], e2eMicros: [-1, false] })]);
  assert.match(
    text,
    /^No candidate differs from own beyond chance in TTFT, TPOT or E2E; nearest to a gain is a: mean E2E −1/,
  );
  assert.match(text, /TTFT \+3\.0 % \(within chance\)/);
});

test("better and worse are by mean E2E, and what the other two pay for it stands beside", () => {
  const better = told([candidate("a", { e2eMicros: [-8, true], ttftMicros: [20, true] })]);
  assert.match(better, /^a would have been better than own in E2E: mean E2E −8\.0 % .*, TTFT \+20\.0 %/);
  assert.match(better, /lowest mean E2E of all with a probability of 50 %/);
  assert.match(
    told([candidate("a", { e2eMicros: [8, true] })]),
    /^own stays best in E2E; next is a: mean E2E \+8\.0 %/,
  );
});

test("an engine that nobody named is called a guess", () => {
  assert.match(told([candidate("a", {})], "emulated-default"), /The engine, emulated-default, is a guess/);
  assert.doesNotMatch(told([candidate("a", {})]), /guess/);
});
