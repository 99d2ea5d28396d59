import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { registerShadow } from "#live/metrics/metric-shadow.ts";
import type { ShadowCalibration, ShadowStatus } from "#live/metrics/shadow-status.ts";

const HELD_OUT = { requests: 60, predictedSeconds: 0.5, observedSeconds: 0.4, mean: 0.25, mape: 0.5 };
const CALIBRATION: ShadowCalibration = {
  mode: "continuous",
  source: "fitted",
  fitAgeSeconds: 12.5,
  fits: { accepted: 2, worse: 3, "not-identified": 0 },
  latest: undefined,
  sizes: { blockTokens: 16, kvBlocks: 100, sequencesMax: 8, batchTokensMax: 2048 },
  coefficients: { baseMicros: 5000, perPrefillTokenMicros: 25 },
  standardErrors: {},
  heldOut: { ttft: HELD_OUT },
  heldOutByEndpoint: { "http://many:1": { ttft: HELD_OUT } },
  cachedTokensError: undefined,
};
const STATUS: ShadowStatus = {
  state: "running",
  detail: "",
  restarts: 1,
  dropped: 4,
  bufferedBytes: 0,
  lagMillis: 250,
  parity: { decisions: 10, differences: 0, unverifiable: 0 },
  cpuSeconds: 1.5,
  calibration: CALIBRATION,
  evaluation: undefined,
};

async function linesOf(status: ShadowStatus): Promise<string[]> {
  const registry = new Registry();
  registerShadow(registry, () => status);
  return (await registry.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("the engine model's numbers are on the page, labelled by what is known beforehand alone", async () => {
  const lines = await linesOf(STATUS);
  for (const line of [
    "gnomon_shadow_cpu_seconds_total 1.5",
    'gnomon_shadow_fits_total{outcome="accepted"} 2',
    'gnomon_shadow_fits_total{outcome="not-identified"} 0',
    "gnomon_shadow_fit_age_seconds 12.5",
    'gnomon_shadow_engine_coefficient_seconds{coefficient="base"} 0.005',
    'gnomon_shadow_engine_coefficient_seconds{coefficient="perPrefillToken"} 0.000025',
    'gnomon_shadow_held_out_error_ratio{metric="ttft"} 0.25',
    'gnomon_shadow_held_out_absolute_error_ratio{metric="ttft"} 0.5',
  ])
    assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  assert.ok(lines.every((line) => !line.includes("http://")));
});

test("before the first fit there is neither an age nor an error, but the engine that it begins with", async () => {
  const calibration: ShadowCalibration = {
    ...CALIBRATION,
    source: "configured",
    fitAgeSeconds: undefined,
    heldOut: {},
  };
  const lines = await linesOf({ ...STATUS, calibration });
  assert.ok(lines.every((line) => !/fit_age|held_out/.test(line)));
  assert.ok(lines.includes('gnomon_shadow_engine_coefficient_seconds{coefficient="base"} 0.005'));
});

test("an evaluation's intervals are there where replicas were simulated, and say how many", async () => {
  const figures = { expected: 0.5, low: 0.25, high: 1 };
  const evaluation: ShadowStatus["evaluation"] = {
    inForce: "gnomon",
    requests: 100,
    millis: 5,
    cpuMillis: 4,
    modelError: { ttft: -0.125 },
    measuredSeconds: { ttft: 0.1 },
    uncompared: { early: 20 },
    inside: {},
    replicas: 7,
    withoutIntervals: "",
    fleetEventsMerged: 0,
    candidates: [
      {
        name: "lmetric",
        hitRatio: 0.5,
        predictedSeconds: { ttft: 0.75 },
        intervalSeconds: { ttft: { mean: figures, p50: figures, p99: { ...figures, high: 9 } } },
        differenceSeconds: { ttft: { mean: -0.25, low: -0.5, high: -0.125, exceedsNoise: true } },
      },
    ],
  };
  const lines = await linesOf({ ...STATUS, evaluation });
  for (const line of [
    "gnomon_shadow_replicas 7",
    'gnomon_shadow_predicted_mean_seconds{profile="lmetric",metric="ttft"} 0.75',
    'gnomon_shadow_predicted_mean_expected_seconds{profile="lmetric",metric="ttft"} 0.5',
    'gnomon_shadow_predicted_mean_low_seconds{profile="lmetric",metric="ttft"} 0.25',
    'gnomon_shadow_predicted_mean_high_seconds{profile="lmetric",metric="ttft"} 1',
    'gnomon_shadow_predicted_difference_seconds{profile="lmetric",metric="ttft"} -0.25',
    'gnomon_shadow_predicted_difference_exceeds_noise{profile="lmetric",metric="ttft"} 1',
  ])
    assert.ok(lines.includes(line), `${line} in ${lines.join("\n")}`);
  const bare = { ...evaluation, candidates: [{ ...evaluation.candidates[0]!, intervalSeconds: {} }] };
  const without = await linesOf({ ...STATUS, evaluation: bare });
  assert.ok(without.every((line) => !/predicted_mean_(expected|low|high)_seconds/.test(line)));
});
