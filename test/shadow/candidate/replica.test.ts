import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { replicaEngines } from "#shadow/candidate/replica.ts";

const ENGINE = engineDefaults({
  queueDelay: { baseMicros: 1_000, perPromptTokenMicros: 2 },
  stepTime: { kind: "coefficients", baseMicros: 5_000, perPrefillTokenMicros: 40, perDecodeMicros: 10 },
});
const STEADY = { windowMicros: 1e6, windows: [[0, 0, 0, 0]], levelError: 0.03, delayError: 0.04, prefillError: 0.05 };
const RUNS = { level: 0.2, delay: 0.5, prefill: 0.3, noise: 0, runs: 2 };
const REPLICAS = 400;

/** Standard deviations over replicas of the logarithms of what is drawn once for each. */
function spreads(residuals: Parameters<typeof replicaEngines>[1]) {
  const engines = Array.from({ length: REPLICAS }, (_, i) => replicaEngines(ENGINE, residuals, 3, i + 1, 4e6)(0));
  const of = (pick: (engine: (typeof engines)[number]) => number): number => {
    const logs = engines.map((engine) => Math.log(pick(engine)));
    const mean = logs.reduce((sum, log) => sum + log, 0) / REPLICAS;
    return Math.sqrt(logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / REPLICAS);
  };
  return {
    level: of(({ stepDrift }) => stepDrift!.factors[0]!),
    delay: of(({ queueDelay }) => queueDelay.baseMicros),
    delayPerToken: of(({ queueDelay }) => queueDelay.perPromptTokenMicros),
    prefill: of(({ stepTime }) => (stepTime.kind === "coefficients" ? stepTime.perPrefillTokenMicros : NaN)),
  };
}

function near(found: number, expected: number): void {
  assert.ok(Math.abs(found / expected - 1) < 0.05, `${found}, expected ${expected}`);
}

test("what replicas draw once spreads as the fit's own errors say, and as runs differ beside", () => {
  const within = spreads(STEADY);
  near(within.level, 0.03);
  near(within.delay, 0.04);
  near(within.delayPerToken, 0.04);
  near(within.prefill, 0.05);
  const between = spreads({ ...STEADY, betweenRuns: RUNS });
  near(between.level, Math.hypot(0.03, 0.2));
  near(between.delay, Math.hypot(0.04, 0.5));
  near(between.delayPerToken, Math.hypot(0.04, 0.5));
  near(between.prefill, Math.hypot(0.05, 0.3));
});

test("where this run lay moves what is drawn, and the first replica draws nothing", () => {
  const residuals = { ...STEADY, betweenRuns: RUNS, thisRun: { level: 0.1, delay: -0.2, error: 0 } };
  const usual = replicaEngines(ENGINE, residuals, 3, 0, 4e6)(0);
  assert.equal(usual.queueDelay.baseMicros, 1_000 * Math.exp(-0.2));
  assert.ok(Math.abs(usual.stepDrift!.factors[0]! - Math.exp(0.1)) < 1e-6);
  const moved = Array.from({ length: REPLICAS }, (_, i) =>
    Math.log(replicaEngines(ENGINE, residuals, 3, i + 1, 4e6)(0).queueDelay.baseMicros / 1_000),
  );
  const mean = moved.reduce((sum, log) => sum + log, 0) / REPLICAS;
  assert.ok(Math.abs(mean + 0.2) < 0.05, `${mean}`);
});
