import assert from "node:assert/strict";
import { test } from "node:test";
import { ArmTally } from "#core/rollout/judge/arm-tally.ts";
import {
  type GuardedRequests,
  type Guardrail,
  guardrailReading,
  type OpenRequest,
} from "#core/rollout/judge/guardrail.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";

const MILLI = 1_000;

function ended(status: RolloutOutcome["status"], ttft: number, tpot: number, e2e: number): RolloutOutcome {
  return {
    arm: 1,
    window: 0,
    counted: true,
    stretch: 0,
    slice: 0,
    cluster: "",
    status,
    times: { ttft: ttft * MILLI, tpot: tpot * MILLI, e2e: e2e * MILLI },
    endpoint: "a",
    promptTokens: 1,
    cachedTokens: 0,
  };
}

function open(ageMillis: number, ttftMillis?: number): OpenRequest {
  const ttftMicros = ttftMillis === undefined ? undefined : ttftMillis * MILLI;
  return { arm: 1, stretch: 0, slice: 0, ageMicros: ageMillis * MILLI, ttftMicros };
}

/** One that ended, one with its first token, and one that waits for it. */
function requests(): GuardedRequests {
  const tally = new ArmTally();
  tally.add(ended("ok", 100, 10, 400));
  return { ended: tally, open: [open(900, 200), open(600)], independent: 3 };
}

function figure(of: Guardrail["figure"], given = requests(), overdueMicros = 1): [samples: number, value: number] {
  const limit = { figure: of, absoluteMax: Infinity, samplesMin: 1, overdueMicros };
  const { samples, value } = guardrailReading(limit, 1, given, 3);
  return [samples, value];
}

test("requests under way count as what they have waited so far: to the first token, or since they came", () => {
  assert.deepEqual(figure("ttft.mean"), [3, 300 * MILLI], "100, 200, and 600 so far");
  assert.deepEqual(figure("e2e.mean"), [3, (1_900 / 3) * MILLI], "400, and 900 and 600 so far");
  assert.deepEqual(figure("tpot.mean"), [1, 10 * MILLI], "known of what ended alone");
});

test("a request is overdue by its first token, or by its age while it has none", () => {
  assert.deepEqual(figure("overdue-rate", requests(), 250 * MILLI), [3, 1 / 3]);
  assert.deepEqual(figure("overdue-rate", requests(), 150 * MILLI), [3, 2 / 3]);
  assert.deepEqual(figure("overdue-rate", requests(), 50 * MILLI), [3, 1]);
  assert.deepEqual(figure("overdue-rate", requests(), 600 * MILLI), [3, 0], "not yet at the limit itself");
});

test("failures and refusals are shares of what ended", () => {
  const tally = new ArmTally();
  for (const status of ["ok", "failed", "refused", "ok"] as const) tally.add(ended(status, 1, 1, 1));
  tally.add(ended("failed", 1, 1, 1));
  const given = { ended: tally, open: [open(5)], independent: 5 };
  assert.deepEqual(figure("error-rate", given), [5, 2 / 5]);
  assert.deepEqual(figure("refused-rate", given), [5, 1 / 5]);
});
