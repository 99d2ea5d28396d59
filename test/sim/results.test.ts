import assert from "node:assert/strict";
import { test } from "node:test";
import { counterfactuals } from "#sim/counterfactual.ts";
import { DecisionTrace } from "#sim/result/decision-trace.ts";
import { distribution } from "#sim/result/distribution.ts";
import { fitnessOf } from "#sim/result/fitness.ts";
import { simulate } from "#sim/simulate.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN, WEIGHTED } from "./cluster.ts";

const STEP = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

function tagged(number: number, at: number, output: number, sloClass: string, tenant: string): ListedArrival {
  const plain = listed(number, at, 10, output);
  return { ...plain, route: { ...plain.route, sloClass, tenant } };
}

test("percentiles are interpolated between ranks, and none is made of nothing", () => {
  assert.equal(distribution(new Float64Array(0)), undefined);
  const values = distribution(Float64Array.from([40, 10, 20, 30]));
  assert.deepEqual([values?.count, values?.mean, values?.min, values?.max], [4, 25, 10, 40]);
  assert.equal(values?.p50, 25);
  assert.ok(Math.abs((values?.p90 ?? 0) - 37) < 1e-9);
});

test("values of any sign are put in order, and by their place in a larger buffer too", () => {
  const drawn = [
    [3, 0.5, 1e12, 7, 0.25, 3, -0, 0],
    [2, -1.5, -7, 0.5, -1e9, 4],
    [Infinity, 5e-324, 1, 0.1],
  ];
  for (const numbers of drawn) {
    const values = new Float64Array([-99, ...numbers, 99]).subarray(1, numbers.length + 1);
    const found = distribution(values);
    assert.deepEqual(values, Float64Array.from(numbers).sort());
    assert.deepEqual([found?.min, found?.max], [values[0], values.at(-1)]);
    assert.equal(found?.mean, values.reduce((sum, value) => sum + value) / values.length);
  }
});

test("figures by class and tenant are those of their requests", () => {
  const arrivals = [
    tagged(0, 0, 5, "fast", "a"),
    tagged(1, 100_000, 15, "slow", "b"),
    tagged(2, 200_000, 5, "fast", "a"),
    tagged(3, 300_000, 15, "slow", "c"),
  ];
  const { metrics, tenants, endedAt } = simulate(
    cluster(ROUND_ROBIN, engines(2, { stepTime: STEP }), { arrivals: new ListedArrivals(arrivals) }),
    { fast: { e2eMicros: 5_000 }, slow: { ttftMicros: 1_000, e2eMicros: 14_999 } },
  );
  assert.equal(endedAt, 315_000);
  assert.equal(metrics.e2eMicros["fast"]?.mean, 5_000);
  assert.equal(metrics.e2eMicros["slow"]?.mean, 15_000);
  assert.equal(metrics.e2eMicros["all"]?.mean, 10_000);
  assert.equal(metrics.tpotMicros["slow"]?.max, 1_000);
  assert.deepEqual(metrics.sloAttainment, { fast: 1, slow: 0 });
  assert.equal(metrics.sloAttainmentAll, 0.5);
  assert.ok(Math.abs((metrics.goodputPerSec ?? 0) - 2 / 0.315) < 1e-9);
  assert.deepEqual(
    tenants.map(({ tenant, outputTokens }) => [tenant, outputTokens]),
    [
      ["a", 10],
      ["b", 15],
      ["c", 15],
    ],
  );
  assert.ok(Math.abs(metrics.jainFairnessIndex - 1600 / (3 * 550)) < 1e-12);
  const fitness = fitnessOf(metrics, { slo_attainment: 2, mean_e2e: 1 });
  assert.ok(Math.abs(fitness.score - (2 * 0.5 + 1 / 11)) < 1e-12);
  assert.equal(fitnessOf(metrics, { p99_tpot: 1 }).score, 0.5, "a millisecond a token");
});

test("an endpoint's figures are sums over the ranks behind it", () => {
  const arrivals = Array.from({ length: 6 }, (_, i) => listed(i, i * 50_000, 64, 5));
  const ranked = engines(1, { stepTime: STEP, dataParallel: 2 });
  const { endpoints, metrics } = simulate(cluster(ROUND_ROBIN, ranked, { arrivals: new ListedArrivals(arrivals) }));
  const [one] = endpoints;
  assert.equal(endpoints.length, 1);
  assert.deepEqual([one?.requests, one?.completed, one?.outputTokens], [6, 6, 30]);
  assert.ok(one!.steps >= 6 * 5, `${one?.steps} steps for six requests one after another`);
  assert.deepEqual([one?.preemptions, one?.blockHits, metrics.preemptionRate, metrics.cacheHitRate.gpu], [0, 0, 0, 0]);
  assert.ok(one!.blockMisses >= 6 * 3, `${one?.blockMisses} blocks were computed`);
});

test("blocks that are copied to the host count against those that were filled", () => {
  const tier = {
    cpuBlocks: 1_000,
    offloadThreshold: 0,
    transferBaseMicros: 1,
    blockBytes: 1,
    bytesPerSecond: 1e9,
    thrashWindowMicros: 1_000_000,
  };
  // Prompts of two blocks each, one after another, in a cache of eight: all of them are copied out as they are given back.
  const arrivals = Array.from({ length: 20 }, (_, i) => listed(i, i * 50_000, 32, 3));
  const run = (specs: ReturnType<typeof engines>) =>
    simulate(cluster(ROUND_ROBIN, specs, { arrivals: new ListedArrivals(arrivals) })).metrics;
  const { offloadRate, offloadedBlocks } = run(engines(1, { stepTime: STEP, kvBlocks: 9, tier }));
  assert.ok(offloadedBlocks > 0 && offloadRate > 0 && offloadRate <= 1, `${offloadedBlocks} blocks, ${offloadRate}`);
  assert.equal(run(engines(1, { stepTime: STEP, kvBlocks: 9 })).offloadRate, 0);
});

test("every gap between tokens is recorded where it is asked for", () => {
  const arrivals = [listed(0, 0, 10, 4), listed(1, 1_500, 10, 3)];
  const specs = engines(1, { stepTime: STEP, coalesce: false });
  const { metrics } = simulate(
    cluster(ROUND_ROBIN, specs, { arrivals: new ListedArrivals(arrivals), tokenGaps: true }),
  );
  assert.deepEqual([metrics.itlMicros?.count, metrics.itlMicros?.min, metrics.itlMicros?.max], [5, 1000, 1000]);
});

test("a trace has what was chosen over what, and its summary adds up", () => {
  const arrivals = Array.from({ length: 30 }, (_, i) => listed(i, i * 2_000, 64, 20));
  const trace = new DecisionTrace(2, true);
  simulate(cluster(WEIGHTED, engines(3), { arrivals: new ListedArrivals(arrivals), observe: trace.observe }));
  const summary = trace.summary();
  assert.equal(trace.decisions.length, 30);
  assert.equal(summary.routed, 30);
  assert.equal(
    Object.values(summary.targetDistribution).reduce((sum, count) => sum + count, 0),
    30,
  );
  assert.equal(
    Object.values(summary.reasons).reduce((sum, count) => sum + count, 0),
    30,
  );
  assert.equal(summary.maxScoreRegret, 0, "who takes the best score regrets none");
  for (const { candidates, endpoint } of trace.decisions) {
    assert.equal(candidates.length, 2);
    assert.ok(candidates[0]!.score >= candidates[1]!.score);
    assert.ok(endpoint !== undefined);
  }
});

test("regret by outcome is what the request would have had elsewhere", () => {
  // In turn: the third request goes to the first engine, which is busy with a long prompt; the second engine is free.
  const create = () => {
    const arrivals = [listed(0, 0, 4_000, 300), listed(1, 1_000, 16, 1), listed(2, 400_000, 3_000, 2)];
    const stepTime = { ...STEP, perDecodeMicros: 5_000 };
    return cluster(ROUND_ROBIN, engines(2, { stepTime, check: false }), { arrivals: new ListedArrivals(arrivals) });
  };
  const found = counterfactuals(create, 1, 3);
  assert.deepEqual(
    found.map(({ requestId }) => requestId),
    ["request_0", "request_1", "request_2"],
  );
  const third = found[2];
  assert.equal(third?.chosen, "engine_000");
  assert.equal(third.alternatives[0]?.endpoint, "engine_001");
  assert.equal(third.regretMicros, third.e2e - third.alternatives[0].e2e);
  assert.ok(third.regretMicros > 5_000, `${third.regretMicros}`);
  assert.ok(third.meanRegretMicros > 0);
});
