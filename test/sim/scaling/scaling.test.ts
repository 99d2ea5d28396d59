import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SCALE_POLICIES, SCALE_POLICY_DEFAULTS } from "#core/autoscale/scale-policy.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { DRAIN_POLICIES, type ScalingOptions } from "#sim/setting/scaling-options.ts";
import { simulate } from "#sim/simulate.ts";
import { type ListedArrival, ListedArrivals } from "../../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "../cluster.ts";

const SECOND = MICROS_PER_SECOND;
/** Every step takes 10 ms, so that an answer of 100 tokens takes a second. */
const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
const SCALING: ScalingOptions = {
  autoscaler: {
    policy: { type: "queue-depth", target: 2, tolerance: 0 },
    min: 1,
    max: 4,
    cooldownMicros: 0,
    downStabilizationMicros: 0,
    stepMax: 4,
  },
  everyMicros: SECOND,
  metricsDelayMicros: 0,
  provisioningMicros: 2 * SECOND,
  warmupMicros: SECOND,
  drain: "wait",
};

function run(arrivals: readonly ListedArrival[], scaling: Partial<ScalingOptions> = {}, count = 1) {
  const options = { arrivals: new ListedArrivals(arrivals), scaling: { ...SCALING, ...scaling }, check: true };
  return simulate(cluster(ROUND_ROBIN, engines(count, { stepTime: STEP }), options));
}

/** `count` requests of a second each, one every so many milliseconds. */
const steady = (count: number, everyMillis: number, tokens = 100): ListedArrival[] =>
  Array.from({ length: count }, (_, i) => listed(i, i * everyMillis * 1000, 10, tokens));

test("more replicas come after provisioning and warm-up, and fewer stay when the load is gone", () => {
  // Eight in flight for ten seconds, then one request a second for twenty.
  const late = Array.from({ length: 20 }, (_, i) => listed(100 + i, (11 + i) * SECOND, 10, 10));
  const { scaling, endpoints, requests, outcomes } = run([...steady(80, 125), ...late]);
  const [first, last] = [scaling!.actions[0]!, scaling!.actions.at(-1)!];
  assert.deepEqual({ ...first, reason: "" }, { at: SECOND, action: "up", from: 1, to: 4, reason: "" });
  assert.match(first.reason, /^[78]\.0 requests in flight per replica$/);
  assert.equal(last.to, 1);
  assert.equal(requests.completed, 100);
  assert.equal(endpoints.length, 4);
  const early = outcomes.endpoint.findIndex((number) => number > 0);
  assert.ok(outcomes.arrivalAt[early]! >= 4 * SECOND, "nothing goes to a replica that is not warm");
  assert.ok(scaling!.replicaSeconds < 4 * 31 && scaling!.replicaSeconds > 31);
  assert.equal(scaling!.replicasMax, 4);
});

test("an oracle orders replicas so that they take requests as the load comes", () => {
  const perSecond = Array.from({ length: 30 }, (_, second) => (second >= 20 ? 30 : 10));
  const autoscaler = { ...SCALING.autoscaler, policy: SCALE_POLICY_DEFAULTS.oracle };
  for (const metricsDelayMicros of [0, SECOND]) {
    const { scaling } = run(steady(300, 100), {
      autoscaler,
      metricsDelayMicros,
      arrivals: { windowMicros: SECOND, perSecond },
    });
    const { at, from, to } = scaling!.actions[0]!;
    // From the look: the delay, 2 s of provisioning, 1 of warm-up, and one look more.
    assert.deepEqual([at - metricsDelayMicros, from, to], [16 * SECOND - metricsDelayMicros, 1, 3]);
  }
});

test("a fleet that grows under load loses nothing of what its engines are at", () => {
  const autoscaler = { ...SCALING.autoscaler, max: 40, stepMax: 40 };
  const { scaling, requests, endpoints } = run(steady(600, 10), { autoscaler, everyMicros: SECOND / 4 });
  assert.ok(endpoints.length > 32, "more than the fleet has had room for twice");
  assert.equal(requests.completed, 600);
  assert.ok(scaling!.replicasMax > 32);
});

test("a decision is as late as the metrics that it rests on", () => {
  const { scaling } = run(steady(80, 125), { metricsDelayMicros: (15 * SECOND) / 10 });
  assert.equal(scaling!.actions[0]!.at, 2_500_000);
});

test("a replica that is still coming is given up first, at no cost after that", () => {
  const burst = [...steady(8, 1, 50), listed(50, 20 * SECOND, 10, 10)];
  const { scaling, endpoints } = run(burst, { provisioningMicros: 100 * SECOND, everyMicros: SECOND / 4 });
  assert.deepEqual(
    scaling!.actions.map(({ from, to }) => [from, to]),
    [
      [1, 4],
      [4, 1],
    ],
  );
  assert.equal(endpoints.length, 1);
  const waited = (scaling!.actions[1]!.at - scaling!.actions[0]!.at) / SECOND;
  assert.ok(Math.abs(scaling!.replicaSeconds - (20.1 + 3 * waited)) < 0.02, String(scaling!.replicaSeconds));
});

test("drain: who waits is paid until its last answer, redirected requests move, and an immediate end moves begun ones", () => {
  // Long answers keep both replicas busy while the policy wants one.
  const short = Array.from({ length: 6 }, (_, i) => listed(10 + i, (i + 1) * 100_000, 10, 5));
  const arrivals = [listed(0, 0, 10, 3_000), listed(1, 1, 10, 3_000), ...short];
  const policy = { type: "queue-depth", target: 100, tolerance: 0 } as const;
  const of = (drain: ScalingOptions["drain"]) =>
    run(arrivals, { drain, autoscaler: { ...SCALING.autoscaler, policy } }, 2);
  const [wait, redirect, immediate] = DRAIN_POLICIES.map(of);
  assert.equal(wait!.requests.completed, 8);
  assert.equal(redirect!.requests.completed, 8);
  assert.equal(immediate!.requests.completed, 8);
  assert.equal(immediate!.path.continuations, 1, "its answer goes on at the other one");
  assert.ok(wait!.scaling!.replicaSeconds > 59, "both end after half a minute");
  assert.ok(immediate!.scaling!.replicaSeconds < 32, "one of them ended after a second");
});

test("requests without a token leave a replica that is taken away, and are served elsewhere", () => {
  // The second engine has one place: the others wait there when it goes.
  const arrivals = Array.from({ length: 9 }, (_, i) => listed(i, 0, 10, 200));
  const policy = { type: "queue-depth", target: 100, tolerance: 0 } as const;
  const options = { drain: "redirect" as const, everyMicros: SECOND, autoscaler: { ...SCALING.autoscaler, policy } };
  const scaled = cluster(ROUND_ROBIN, engines(2, { stepTime: STEP, sequencesMax: 2 }), {
    arrivals: new ListedArrivals(arrivals),
    scaling: { ...SCALING, ...options },
    check: true,
  });
  const { requests, path, outcomes } = simulate(scaled);
  assert.equal(requests.completed, 9);
  assert.equal(path.retries, 2, "two of four waited");
  assert.equal(path.cuts, 0);
  assert.equal(outcomes.attempts.filter((attempts) => attempts === 2).length, 2);
});

test("law: conservation, bounds and the same bytes, under every policy and drain", () => {
  const arrival = fc.record({ gap: fc.integer({ min: 0, max: 800_000 }), tokens: fc.integer({ min: 1, max: 300 }) });
  fc.assert(
    fc.property(
      fc.constantFrom(...SCALE_POLICIES),
      fc.constantFrom(...DRAIN_POLICIES),
      fc.array(arrival, { minLength: 1, maxLength: 60 }),
      (type, drain, gaps) => {
        let at = 0;
        const arrivals = gaps.map(({ gap, tokens }, i) => listed(i, (at += gap), 10, tokens));
        const policy = type === "queue-depth" ? SCALING.autoscaler.policy : SCALE_POLICY_DEFAULTS[type];
        const options = { drain, autoscaler: { ...SCALING.autoscaler, policy } };
        const one = run(arrivals, options, 2);
        const { completed, lost, cut, unplaced } = one.requests;
        assert.equal(completed + lost + cut + unplaced, arrivals.length);
        assert.equal(drain === "immediate" ? 0 : cut, 0);
        const again = run(arrivals, options, 2);
        assert.equal(JSON.stringify(again.scaling), JSON.stringify(one.scaling));
        assert.deepEqual(again.outcomes.e2e, one.outcomes.e2e);
        const { replicaSeconds, replicasMax } = one.scaling!;
        assert.ok(replicasMax <= 4 && replicaSeconds >= one.endedAt / SECOND - 1e-6);
      },
    ),
    { numRuns: 60 },
  );
});
