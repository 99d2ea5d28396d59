import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { desiredReplicas, SCALE_POLICY_DEFAULTS } from "#core/autoscale/scale-policy.ts";

interface Case {
  readonly ready: number;
  readonly pending: number;
  readonly kvTokens: number;
  readonly tokensInUse: number;
  readonly waiting: number;
  readonly promptTokens: number;
  /** Tokens of capacity that are missing, and that could be given up; at most one of them is above 0. */
  readonly required: number;
  readonly spare: number;
}

const { cases } = JSON.parse(
  readFileSync(new URL("../../golden/blis-scaling/saturation.json", import.meta.url), "utf8"),
) as { readonly cases: readonly Case[] };

function wanted({ ready, pending, kvTokens, tokensInUse, waiting, promptTokens }: Case): number {
  const signals = {
    at: 0,
    ready,
    waiting,
    running: 0,
    runningMax: 0,
    kvUtilization: tokensInUse / (ready * kvTokens),
    kvTokens,
    promptTokensMean: promptTokens,
    requestsPerSecond: 0,
    requestsPerSecondAhead: undefined,
  };
  return desiredReplicas(SCALE_POLICY_DEFAULTS.saturation, signals, ready + pending).replicas - ready - pending;
}

test("saturation asks for more where BLIS's analyzer misses capacity, replicas that are coming counted by both", () => {
  for (const one of cases) assert.equal(wanted(one) > 0, one.required > 0, JSON.stringify(one));
  assert.ok(cases.filter(({ required }) => required > 0).length > 20);
});

test("and for as many as that capacity takes", () => {
  for (const one of cases.filter(({ required }) => required > 0))
    assert.equal(wanted(one), Math.ceil(one.required / (0.8 * one.kvTokens) - 1e-9), JSON.stringify(one));
});

// While some are coming BLIS gives up one that is ready, by what is ready alone; here the one that is coming goes first.
test("it gives one up where BLIS's analyzer has some to spare, while none is coming", () => {
  const settled = cases.filter(({ pending }) => pending === 0);
  for (const one of settled) assert.equal(wanted(one) < 0, one.spare > 0, JSON.stringify(one));
  assert.ok(settled.filter(({ spare }) => spare > 0).length > 20);
});
