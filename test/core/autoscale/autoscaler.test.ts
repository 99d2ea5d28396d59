import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Autoscaler, type AutoscalerOptions } from "#core/autoscale/autoscaler.ts";
import { desiredReplicas, SCALE_POLICIES, SCALE_POLICY_DEFAULTS } from "#core/autoscale/scale-policy.ts";
import type { ScaleSignals } from "#core/autoscale/scale-signals.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";

const SECOND = MICROS_PER_SECOND;
const CALM: ScaleSignals = {
  at: 0,
  ready: 4,
  waiting: 0,
  running: 0,
  runningMax: 4 * 100,
  kvUtilization: 0,
  kvTokens: 10_000,
  promptTokensMean: 500,
  requestsPerSecond: 0,
  requestsPerSecondAhead: undefined,
};
const OPTIONS: AutoscalerOptions = {
  policy: SCALE_POLICY_DEFAULTS.threshold,
  min: 1,
  max: 8,
  cooldownMicros: 60 * SECOND,
  downStabilizationMicros: 0,
  stepMax: 8,
};

test("threshold: one more above, one less below, nothing between", () => {
  const { threshold } = SCALE_POLICY_DEFAULTS;
  const at = (utilization: number) => desiredReplicas(threshold, { ...CALM, kvUtilization: utilization }, 4).replicas;
  assert.deepEqual([at(0.81), at(0.8), at(0.3), at(0.29)], [5, 4, 4, 3]);
  const running = { ...CALM, running: 360 };
  assert.deepEqual(desiredReplicas(threshold, running, 4), { replicas: 5, reason: "utilization 90 %" });
});

test("target utilization: replicas times utilization over target, rounded up, tolerance left alone", () => {
  const spec = { type: "target-utilization", target: 0.5, tolerance: 0.1 } as const;
  const at = (utilization: number, have = 4) =>
    desiredReplicas(spec, { ...CALM, kvUtilization: utilization }, have).replicas;
  assert.deepEqual([at(0.8), at(0.54), at(0.46), at(0.2)], [7, 4, 4, 2]);
  assert.equal(at(0.8, 9), 9, "those that are coming are waited for");
  assert.equal(at(0.2, 3), 2);
});

test("queue depth: requests in flight per replica, waiting and running ones", () => {
  const spec = { type: "queue-depth", target: 10, tolerance: 0 } as const;
  assert.equal(desiredReplicas(spec, { ...CALM, waiting: 20, running: 40 }, 4).replicas, 6);
  assert.equal(desiredReplicas(spec, { ...CALM, running: 11 }, 4).replicas, 2);
});

test("saturation: held and waiting tokens against the usable capacity, one less only where that one is spare", () => {
  const spec = SCALE_POLICY_DEFAULTS.saturation;
  const at = (kvUtilization: number, waiting = 0) =>
    desiredReplicas(spec, { ...CALM, kvUtilization, waiting }, 4).replicas;
  assert.equal(at(0.9, 8), 7, "40,000 tokens in demand of 6,400 each");
  assert.equal(at(0.3), 4, "12,000 are more than 40 % of three replicas");
  assert.equal(at(0.2), 3);
});

test("saturation states the demand over the usable capacity, 0 % where there is none", () => {
  const spec = SCALE_POLICY_DEFAULTS.saturation;
  const reason = (signals: Partial<ScaleSignals>) => desiredReplicas(spec, { ...CALM, ...signals }, 4).reason;
  assert.equal(reason({ kvUtilization: 0.4 }), `${Math.round(40 / spec.kvPart)} % of the KV capacity in demand`);
  assert.equal(reason({ ready: 0, waiting: 3 }), "0 % of the KV capacity in demand");
  assert.equal(reason({ kvTokens: 0, waiting: 3 }), "0 % of the KV capacity in demand");
});

test("oracle: what is to come over what a replica serves", () => {
  const spec = { type: "oracle", requestsPerSecond: 3 } as const;
  assert.equal(desiredReplicas(spec, { ...CALM, requestsPerSecondAhead: 10 }, 4).replicas, 4);
});

test("a cooldown and a stabilization hold a change back, bounds never", () => {
  const scaler = new Autoscaler({
    ...OPTIONS,
    downStabilizationMicros: 300 * SECOND,
    policy: { ...SCALE_POLICY_DEFAULTS["queue-depth"], target: 10 },
  });
  const look = (seconds: number, inFlight: number, ready: number) =>
    scaler.decide({ ...CALM, at: seconds * SECOND, ready, running: inFlight }, ready).replicas;
  assert.equal(look(0, 60, 4), 6);
  assert.equal(look(30, 80, 6), 6, "cools down");
  assert.equal(look(60, 80, 6), 8);
  assert.equal(look(120, 10, 8), 8, "more was wanted a minute ago");
  assert.equal(look(359, 10, 8), 8);
  assert.equal(look(361, 10, 8), 1);
  assert.equal(new Autoscaler(OPTIONS).decide({ ...CALM, ready: 9 }, 9).replicas, 8);
  assert.deepEqual([scaler.ups, scaler.downs, scaler.oscillations], [2, 1, 0]);
});

test("law: no replica goes before nothing more was wanted for the whole window, which begins with as many as there are", () => {
  for (const type of SCALE_POLICIES) {
    for (const window of [1, 30, 300]) {
      const scaler = new Autoscaler({
        ...OPTIONS,
        cooldownMicros: 0,
        downStabilizationMicros: window * SECOND,
        policy: SCALE_POLICY_DEFAULTS[type],
      });
      // Nothing to do from the first look, half a minute after the start.
      const idle = { ...CALM, ready: 4, running: 0, waiting: 0, kvUtilization: 0, requestsPerSecond: 0 };
      const at = (seconds: number) => scaler.decide({ ...idle, at: seconds * SECOND, requestsPerSecondAhead: 0 }, 4);
      for (let seconds = 30; seconds < 30 + window; seconds += 0.5)
        assert.equal(at(seconds).action, "none", `${type} after ${seconds - 30} of ${window} s`);
      assert.equal(at(30 + window).action, "down", type);
    }
  }
});

test("a change back within the window is an oscillation", () => {
  const scaler = new Autoscaler({ ...OPTIONS, cooldownMicros: 10 * SECOND });
  scaler.decide({ ...CALM, at: 0, kvUtilization: 0.9 }, 4);
  scaler.decide({ ...CALM, at: 10 * SECOND, kvUtilization: 0.1 }, 5);
  scaler.decide({ ...CALM, at: 40 * SECOND, kvUtilization: 0.9 }, 4);
  assert.equal(scaler.oscillations, 1);
});

test("bounds that hold no number are refused", () => {
  assert.throws(() => new Autoscaler({ ...OPTIONS, min: 0 }), /expected 1 <= min <= max, got 0 and 8/);
  assert.throws(() => new Autoscaler({ ...OPTIONS, min: 9 }), RangeError);
});

test("law: whatever is seen, every policy's decision keeps bounds, step and cooldown, and equal looks decide equally", () => {
  const signal = fc.record({
    gap: fc.integer({ min: 1, max: 120 }),
    waiting: fc.integer({ min: 0, max: 500 }),
    running: fc.integer({ min: 0, max: 500 }),
    kvUtilization: fc.double({ min: 0, max: 1, noNaN: true }),
    requestsPerSecond: fc.integer({ min: 0, max: 1000 }),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...SCALE_POLICIES),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 0, max: 10 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(signal, { maxLength: 40 }),
      (type, min, extra, stepMax, looks) => {
        const options = { ...OPTIONS, policy: SCALE_POLICY_DEFAULTS[type], min, max: min + extra, stepMax };
        const [one, other] = [new Autoscaler(options), new Autoscaler(options)];
        let have = min;
        let at = 0;
        let changedAt = -Infinity;
        for (const { gap, ...seen } of looks) {
          at += gap * SECOND;
          const signals = { ...CALM, ...seen, at, ready: have, runningMax: 100 * have };
          const decision = one.decide(signals, have);
          assert.deepEqual(other.decide(signals, have), decision);
          assert.ok(decision.replicas >= min && decision.replicas <= min + extra);
          assert.ok(Math.abs(decision.replicas - have) <= stepMax);
          assert.equal(decision.action === "none", decision.replicas === have);
          if (decision.action !== "none") {
            assert.ok(at - changedAt >= options.cooldownMicros);
            changedAt = at;
          }
          have = decision.replicas;
        }
      },
    ),
  );
});
