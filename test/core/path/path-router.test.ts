import assert from "node:assert/strict";
import { test } from "node:test";
import type { Placed } from "#core/input/decision.ts";
import { CONTINUATION, Continuation } from "#core/path/continuation/continuation.ts";
import { REROUTED } from "#core/path/path-event.ts";
import { HEDGING } from "#core/path/hedging/hedging-kind.ts";
import { type LeavingAttempt, RETRIES, type RetryPolicy } from "#core/path/retry-policy.ts";
import { type FailureOf, PathRouter } from "#core/path/path-router.ts";
import type { StageKind } from "#core/path/stage-kind.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { RouteRequest } from "#core/request/request.ts";

const COMMON = {
  at: 0,
  sequence: 0,
  requestId: "r",
  attempt: 2,
  profile: "p",
  breakdown: { candidates: [], scorers: [], values: new Float64Array(), totals: new Float64Array() },
};
const routed = { kind: "routed", ...COMMON, endpoint: "b", reason: "only", hitTokens: 0, usedLedger: false } as unknown;
const rejected = { kind: "rejected", ...COMMON, reason: "no-endpoint" } as unknown;

const REQUEST = { id: "r", promptTokens: 9_000 } as RouteRequest;

interface Asked {
  readonly burst?: number;
  readonly taker?: boolean;
  readonly retries?: StageKind<RetryPolicy>;
}

function asked(decision: unknown, { burst = 1, taker = true, retries = RETRIES }: Asked = {}) {
  const kinds: string[] = [];
  const router = new PathRouter({
    stages: [retries, HEDGING, CONTINUATION],
    settings: {
      attemptsMax: 3,
      continuationsMax: 2,
      retryRatio: 0,
      retryBurst: burst,
      hedgeShareMax: 0,
      hedgeBurst: 1,
    },
    now: () => 7,
    routerOf: () => ({ hasTaker: () => taker, requestOf: (id) => (id === "r" ? REQUEST : undefined) }),
    accept: (input) => {
      kinds.push(input.kind);
      assert.equal(input.at, 7);
    },
    decide: (input) => {
      kinds.push(input.kind);
      assert.equal(input.at, 7);
      return decision as Placed;
    },
  });
  return { router, kinds };
}

const afterFault = (router: PathRouter, fault: Fault, attempts: number, failureOf?: FailureOf) => {
  router.attemptFailed("r", fault, failureOf);
  return router.retry("r", fault, attempts);
};
const ask = (router: PathRouter) => router.sharedOf(HEDGING).ask(router, "r");

test("a fault is an input, and so is the retry that follows; each retry is paid for once", () => {
  const { router, kinds } = asked(routed);
  assert.deepEqual(afterFault(router, "cut", 1), { kind: "retry", decision: routed });
  assert.deepEqual(kinds, ["attempt-failed", "request-retried"]);
  assert.deepEqual(afterFault(router, "cut", 1), { kind: "give-up", why: "budget" });
  assert.deepEqual(kinds, ["attempt-failed", "request-retried", "attempt-failed"]);
});

test("what failed of two stages is what the router gets to know", () => {
  const { router, kinds } = asked(routed, { burst: 3 });
  afterFault(router, "cut", 1, (at, requestId, fault) => ({ kind: "prefill-failed", at, requestId, fault }));
  afterFault(router, "status", 1, (at, requestId) => ({ kind: "transfer-failed", at, requestId }));
  assert.deepEqual(kinds, ["prefill-failed", "request-retried", "transfer-failed", "request-retried"]);
});

test("time, attempts and a fleet without a taker end it, and cost nothing", () => {
  const { router, kinds } = asked(rejected);
  assert.deepEqual(afterFault(router, "timeout", 1), { kind: "give-up", why: "time" });
  assert.deepEqual(afterFault(router, "connect", 3), { kind: "give-up", why: "attempts" });
  assert.deepEqual(afterFault(router, "connect", 2), { kind: "give-up", why: "no-endpoint" });
  assert.deepEqual(kinds, ["attempt-failed", "attempt-failed", "attempt-failed", "request-retried"]);
  assert.equal(router.takerOf("r", "any", { times: 1, timesMax: undefined }), "free", "nothing was spent");
});

test("an answer that broke goes on where policy and router have a place, and the router learns of it only then", () => {
  const { router, kinds } = asked(routed, { burst: 2 });
  const going = (times: number): Continuation => {
    const broken = (): { readonly outputTokens: number } => ({ outputTokens: 5 });
    const quiet = { goOn: () => REROUTED, wentOn: () => {}, denied: () => {} };
    const stage = new Continuation({ router, routeId: "r", broken, ...quiet });
    stage.times = times;
    return stage;
  };
  assert.deepEqual(going(2).goesOn("cut"), { kind: "denied", why: "attempts" });
  assert.deepEqual(kinds, []);
  router.change({ attemptsMax: 3, continuationsMax: 3, retryRatio: 0, retryBurst: 2 });
  const first = going(2);
  assert.equal(first.goesOn("cut"), REROUTED);
  assert.equal(going(0).goesOn("cut"), REROUTED);
  assert.deepEqual(going(0).goesOn("cut"), { kind: "denied", why: "budget" });
  first.firstToken();
  assert.equal(going(0).goesOn("cut"), REROUTED);
  assert.deepEqual(kinds, ["request-continued", "request-continued", "request-continued"]);
});

test("a second endpoint is asked for within its budget, and where somebody could take the request", () => {
  assert.deepEqual(ask(asked(routed, { taker: false }).router), { kind: "give-up", why: "no-endpoint" });
  const { router, kinds } = asked(routed);
  assert.deepEqual(ask(router), { kind: "retry", decision: routed });
  assert.deepEqual(ask(router), { kind: "give-up", why: "budget" });
  assert.deepEqual(kinds, ["request-hedged"]);
});

test("the policy is asked about the request itself, wherever it would leave from", () => {
  const seen: LeavingAttempt[] = [];
  const denies = (leaving: LeavingAttempt) => (seen.push(leaving), "budget" as const);
  const retries: StageKind<RetryPolicy> = {
    ...RETRIES,
    open: (terms) => Object.assign(RETRIES.open(terms), { denial: denies }),
  };
  const { router } = asked(routed, { retries });
  assert.deepEqual(afterFault(router, "cut", 1), { kind: "give-up", why: "budget" });
  assert.equal(router.takerOf("r", "any", { times: 2, timesMax: undefined }), "barred");
  assert.equal(router.denial("gone", { fault: "status", times: 3, timesMax: 4 }), "budget");
  assert.deepEqual(seen, [
    { fault: "cut", times: 1, timesMax: undefined, request: REQUEST },
    { fault: "hung", times: 2, timesMax: undefined, request: REQUEST },
    { fault: "status", times: 3, timesMax: 4, request: undefined },
  ]);
});
