import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import { EMPTY_BREAKDOWN } from "#core/input/breakdown.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import { request } from "../../core/state.ts";
import { ForecastAccuracy } from "#live/metrics/prediction-accuracy.ts";

function routed(at: number, requestId: string, endpoint: string, forecast?: Forecast): Decision {
  return {
    kind: "routed",
    at,
    sequence: 0,
    requestId,
    attempt: 1,
    profile: "p",
    policyVersion: 1,
    endpoint,
    reason: "only",
    hitTokens: 0,
    prefixSource: "approximate",
    usedLedger: false,
    breakdown: EMPTY_BREAKDOWN,
    ...(forecast && { forecast }),
  };
}

const RETRIED = { kind: "request-retried", at: 0, requestId: "" } as const;

function finished(at: number, requestId: string, outputTokens: number | undefined, outcome: "ok" | "failed" = "ok") {
  return { kind: "request-finished", at, requestId, outcome, promptTokens: 1, cachedTokens: 0, outputTokens } as const;
}

test("forecasts stand beside what was measured, by endpoint and figure", () => {
  const accuracy = new ForecastAccuracy(10);
  accuracy.accepted(RETRIED, routed(1_000, "r", "a", { ttftMicros: 300, tpotMicros: 20 }));
  accuracy.accepted({ kind: "first-token", at: 1_200, requestId: "r" }, undefined);
  accuracy.accepted(finished(1_300, "r", 11), undefined);
  const [ttft, tpot] = accuracy.rows();
  assert.deepEqual(ttft, {
    endpoint: "a",
    figure: "ttft",
    counts: { requests: 1, forecastMicros: 300, measuredMicros: 200, errorMicros: 100, errorShares: 0.5 },
  });
  assert.deepEqual(tpot, {
    endpoint: "a",
    figure: "tpot",
    counts: { requests: 1, forecastMicros: 20, measuredMicros: 10, errorMicros: 10, errorShares: 1 },
  });
});

test("the pace of answers that came side by side is that of one, after another attempt too", () => {
  const accuracy = new ForecastAccuracy(10);
  const forecast = { ttftMicros: 300, tpotMicros: 20 };
  const arrived = { kind: "request-arrived", at: 900, request: request({ id: "r", sequences: 2 }) } as const;
  accuracy.accepted(arrived, routed(900, "r", "a", forecast));
  accuracy.accepted(RETRIED, routed(1_000, "r", "a", forecast));
  accuracy.accepted({ kind: "first-token", at: 1_200, requestId: "r" }, undefined);
  accuracy.accepted(finished(1_300, "r", 22), undefined);
  assert.equal(accuracy.rows()[1]!.counts.measuredMicros, 10);
});

test("what failed, has one token or was decided without a forecast is no evidence of the pace", () => {
  const accuracy = new ForecastAccuracy(10);
  const forecast = { ttftMicros: 300, tpotMicros: 20 };
  for (const [requestId, tokens, outcome] of [
    ["failed", 9, "failed"],
    ["short", 1, "ok"],
    ["uncounted", undefined, "ok"],
  ] as const) {
    accuracy.accepted(RETRIED, routed(0, requestId, "a", forecast));
    accuracy.accepted({ kind: "first-token", at: 5, requestId }, undefined);
    accuracy.accepted(finished(9, requestId, tokens, outcome), undefined);
  }
  accuracy.accepted(RETRIED, routed(0, "again", "a", forecast));
  accuracy.accepted(RETRIED, routed(0, "again", "b"));
  accuracy.accepted({ kind: "first-token", at: 5, requestId: "again" }, undefined);
  assert.deepEqual(
    accuracy.rows().map(({ endpoint, figure, counts }) => [endpoint, figure, counts.requests]),
    [
      ["a", "ttft", 3],
      ["a", "tpot", 0],
    ],
  );
});

test("endpoints that left are forgotten, and no more than the bound are counted", () => {
  const accuracy = new ForecastAccuracy(1);
  for (const endpoint of ["a", "b"]) {
    accuracy.accepted(RETRIED, routed(0, endpoint, endpoint, { ttftMicros: 1, tpotMicros: 1 }));
    accuracy.accepted({ kind: "first-token", at: 5, requestId: endpoint }, undefined);
  }
  assert.deepEqual(new Set(accuracy.rows().map(({ endpoint }) => endpoint)), new Set(["a"]));
  accuracy.accepted({ kind: "endpoint-left", at: 9, endpoint: "a" }, undefined);
  assert.deepEqual(accuracy.rows(), []);
});
