import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";
import { compareRuns, type PolicyFigures, spearman } from "#shadow/question/compare.ts";
import { figuresInResults, figuresOfRun } from "#shadow/question/compare-results.ts";

const policies = (values: readonly number[]): PolicyFigures[] =>
  values.map((e2eMean, i) => ({ policy: `policy_${i}`, figures: { e2eMean } }));
const different = fc.uniqueArray(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 2, maxLength: 12 });
const many = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 12 });

test("a simulation that is right but for its scale keeps every rank and pair, and its favourite costs nothing", () => {
  fc.assert(
    fc.property(different, fc.integer({ min: 1, max: 9 }), (values, factor) => {
      const { figures } = compareRuns(policies(values), policies(values.map((value) => factor * value)));
      const transfer = figures.e2eMean!;
      assert.ok(Math.abs(transfer.spearman! - 1) < 1e-12);
      assert.equal(transfer.pairsPreserved, (values.length * (values.length - 1)) / 2);
      assert.equal(transfer.pairs, transfer.pairsPreserved);
      assert.equal(transfer.regret, 0);
      assert.ok(transfer.gaps.every(({ relative }) => Math.abs(relative! - (factor - 1)) < 1e-9));
    }),
  );
});

test("one that is upside down keeps none, and its favourite is the worst there is", () => {
  fc.assert(
    fc.property(different, (values) => {
      const transfer = compareRuns(policies(values), policies(values.map((value) => -value))).figures.e2eMean!;
      assert.ok(Math.abs(transfer.spearman! + 1) < 1e-12);
      assert.equal(transfer.pairsPreserved, 0);
      assert.ok(Math.abs(transfer.regret! - (Math.max(...values) / Math.min(...values) - 1)) < 1e-9);
    }),
  );
});

test("Spearman's correlation is symmetric, in [-1, 1], and without ties 1 - 6 sum d^2 / (n (n^2 - 1))", () => {
  fc.assert(
    fc.property(many, fc.infiniteStream(fc.integer({ min: 1, max: 6 })), (a, stream) => {
      const b = a.map(() => stream.next().value as number);
      const r = spearman(a, b);
      assert.equal(r, spearman(b, a));
      assert.ok(r === undefined || (r >= -1 - 1e-12 && r <= 1 + 1e-12));
      assert.equal(r === undefined, new Set(a).size === 1 || new Set(b).size === 1);
    }),
  );
  const ranks = [...Array.from({ length: 9 }).keys()];
  const shuffled = fc.shuffledSubarray(ranks, { minLength: ranks.length });
  fc.assert(
    fc.property(shuffled, shuffled, (a, b) => {
      const squares = a.reduce((sum, rank, i) => sum + (rank - b[i]!) ** 2, 0);
      assert.ok(Math.abs(spearman(a, b)! - (1 - (6 * squares) / (9 * 80))) < 1e-9);
    }),
  );
});

test("of the hit ratio more is better, and pairs that are equal live say nothing", () => {
  const runs = (ratios: readonly number[]) => ratios.map((hitRatio, i) => ({ policy: `p${i}`, figures: { hitRatio } }));
  const { hitRatio } = compareRuns(runs([0.8, 0.4, 0.4]), runs([0.3, 0.2, 0.5])).figures;
  assert.equal(hitRatio?.gaps[0]?.policy, "p0");
  assert.deepEqual([hitRatio?.pairs, hitRatio?.pairsPreserved], [2, 1]);
  assert.equal(hitRatio?.regret, 0.5);
});

test("goodput is a share too: of what clients of a trace stated, and as what-if and simulate have it", () => {
  const workload = [{ slo: { ttftMicros: 100, tpotMicros: 10 } }, { slo: { ttftMicros: 99 } }, {}, { slo: {} }];
  const served = { ttftMicros: 100, e2eMicros: 200, outputTokens: 11, cachedTokens: NaN };
  const observed = [true, true, true, false].map((ok) => ({ ...served, ok }));
  const run = { workload: workload.map((one) => ({ ...LENGTHS_ONLY, ...one })), observed } as unknown as RecordedRun;
  assert.equal(figuresOfRun(run, "p").figures.goodput, 1 / 3);
  const none = { ...run, workload: run.workload.map(({ slo: _slo, ...one }) => one) };
  assert.equal(figuresOfRun(none as RecordedRun, "p").figures.goodput, undefined);
  const answer = { candidates: [{ name: "p", predicted: {}, hitRatio: 0, goodput: 0.25 }] };
  assert.equal(figuresInResults(answer, "")?.[0]?.figures.goodput, 0.25);
  const runs = (values: readonly number[]) => values.map((goodput, i) => ({ policy: `p${i}`, figures: { goodput } }));
  assert.equal(compareRuns(runs([0.8, 0.4]), runs([0.3, 0.5])).figures.goodput?.regret, 0.5);
});

test("policies that only one side has are named, and a figure that fewer than two share is left out", () => {
  const live = [...policies([1, 2]), { policy: "only live", figures: { e2eMean: 3 } }];
  const simulated = [
    ...policies([1, 2]).map((one) => ({ ...one, figures: { ...one.figures, ttftMean: 1 } })),
    { policy: "only sim", figures: {} },
  ];
  const answer = compareRuns(live, simulated);
  assert.deepEqual([answer.policies.length, answer.onlyLive, answer.onlySimulated], [2, ["only live"], ["only sim"]]);
  assert.deepEqual(Object.keys(answer.figures), ["e2eMean"]);
});

test("every format of results comes to the same figures in microseconds", () => {
  const micros = { count: 9, mean: 2000, min: 1, p50: 1500, p90: 1, p95: 1, p99: 9000, max: 1 };
  const millis = { count: 9, mean: 2, p50: 1.5, p90: 0, p99: 9, max: 9 };
  const figures = {
    ttftMean: 2000,
    ttftP50: 1500,
    ttftP99: 9000,
    tpotMean: 2000,
    tpotP99: 9000,
    e2eMean: 2000,
    e2eP50: 1500,
    e2eP99: 9000,
    hitRatio: 0.5,
  };
  const three = { ttftMicros: micros, tpotMicros: micros, e2eMicros: micros };
  const classes = { ttftMicros: { all: micros }, tpotMicros: { all: micros }, e2eMicros: { all: micros } };
  const results: unknown[] = [
    { ttftMillis: millis, tpotMillis: millis, e2eMillis: millis, hitRatio: { engine: 0.5, gateway: null } },
    { policyId: "p", metrics: { ...classes, cacheHitRate: { gpu: 0.4, cpu: 0.1 } } },
    { candidates: [{ name: "p", predicted: three, hitRatio: 0.5 }] },
  ];
  for (const result of results) assert.deepEqual(figuresInResults(result, "p"), [{ policy: "p", figures }]);
  assert.equal(figuresInResults({ version: 1 }, "p"), undefined);
  assert.equal(figuresInResults([], "p"), undefined);
});

test("where an answer has replicas, what they expect is compared, not the one simulation", () => {
  const summary = { mean: 2000, p50: 1500, p99: 9000 };
  const predicted = { ttftMicros: summary, tpotMicros: summary, e2eMicros: summary };
  const drawn = { mean: { expected: 2200 }, p50: { expected: 1400 }, p99: { expected: 9900 } };
  const candidate = { name: "p", predicted, intervals: { ttftMicros: drawn }, hitRatio: 0.5 };
  const [run] = figuresInResults({ candidates: [candidate] }, "")!;
  const { ttftMean, ttftP50, ttftP99, e2eMean } = run!.figures;
  assert.deepEqual([ttftMean, ttftP50, ttftP99, e2eMean], [2200, 1400, 9900, 2000]);
});

test("a run without streams has no times to the first token and is compared by the rest", () => {
  const none = { count: 0, mean: null, p50: null, p90: null, p99: null, max: null };
  const e2eMillis = { count: 1, mean: 5, p50: 5, p90: 5, p99: 5, max: 5 };
  const [run] = figuresInResults({ ttftMillis: none, tpotMillis: none, e2eMillis, hitRatio: { engine: null } }, "p")!;
  assert.deepEqual(run?.figures, { e2eMean: 5000, e2eP50: 5000, e2eP99: 5000 });
});
