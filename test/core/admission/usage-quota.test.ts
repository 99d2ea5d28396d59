import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIT_ALL, type AdmissionSpec } from "#core/admission/admission-spec.ts";
import { UsageQuota } from "#core/admission/usage-quota.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { request } from "../state.ts";

const WINDOW_MICROS = 1_000;

function quota(outputTokensMax: number): UsageQuota {
  return new UsageQuota({
    windowMicros: WINDOW_MICROS,
    per: "tenant",
    outputTokensMax,
    byTenant: {},
    outputTokensAssumed: 50,
    onLimit: "reject",
  });
}

test("what a request took in one window and gives back in the next is taken off the one it was taken in", () => {
  const limit = quota(100);
  const first = request({ id: "a", promptTokens: 1, outputTokensMax: 100 });
  limit.admitted(first, 0);
  assert.equal(limit.check(request({ id: "b", outputTokensMax: 1 }), 0).action, "reject");
  // At the very start of the next window the one before counts in full.
  assert.equal(limit.check(request({ id: "c", outputTokensMax: 1 }), WINDOW_MICROS).action, "reject");
  limit.ended(first, WINDOW_MICROS, { promptTokens: 1, outputTokens: 10 });
  assert.equal(limit.check(request({ id: "d", outputTokensMax: 90 }), WINDOW_MICROS).action, "admit");
  assert.equal(limit.check(request({ id: "e", outputTokensMax: 91 }), WINDOW_MICROS).action, "reject");
});

test("an answer that its client broke off counts as taken, since nobody knows how much of it was made", () => {
  const spec: AdmissionSpec = {
    ...ADMIT_ALL,
    limits: {
      quota: {
        type: "usage-quota",
        windowMicros: 1e9,
        per: "tenant",
        outputTokensMax: 100,
        byTenant: {},
        outputTokensAssumed: 50,
        onLimit: "reject",
      },
    },
  };
  const counts = { promptTokens: 5, cachedTokens: 0 };
  for (const [outcome, outputTokens, isAdmitted] of [
    ["aborted", undefined, false],
    ["failed", undefined, true],
    ["ok", 10, true],
    ["aborted", 10, true],
  ] as const) {
    const router = new Router({
      seed: 1,
      profiles: { default: { filters: [], scorers: [], picker: { plugin: "random", parameters: {} } } },
      defaultProfile: "default",
      index: new ApproximateIndex(),
      blockTokens: 16,
      staleAfterMicros: 1_000_000,
      admission: spec,
    });
    const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    router.accept({ kind: "request-arrived", at: 1, request: request({ id: "one", outputTokensMax: 100 }) });
    router.accept({ kind: "first-token", at: 2, requestId: "one" });
    router.accept({ kind: "progress", at: 3, requestId: "one", outputTokens: 10 });
    router.accept({ kind: "request-finished", at: 4, requestId: "one", outcome, ...counts, outputTokens });
    const next = router.accept({
      kind: "request-arrived",
      at: 5,
      request: request({ id: "two", outputTokensMax: 60 }),
    });
    assert.equal(next.kind === "routed", isAdmitted, `${outcome}, ${outputTokens} counted`);
  }
});

test("what is given back never makes room beyond the quota, and nothing of it is kept for later", () => {
  const limit = quota(100);
  const first = request({ id: "a", promptTokens: 1, outputTokensMax: 60 });
  limit.admitted(first, 0);
  // Two windows later nothing of it counts any more; giving it back gives nothing.
  limit.ended(first, 2 * WINDOW_MICROS, { promptTokens: 1, outputTokens: 0 });
  const all = request({ id: "b", promptTokens: 1, outputTokensMax: 100 });
  assert.equal(limit.check(all, 2 * WINDOW_MICROS).action, "admit");
  limit.admitted(all, 2 * WINDOW_MICROS);
  assert.equal(limit.check(request({ id: "c", outputTokensMax: 1 }), 2 * WINDOW_MICROS).action, "reject");
  assert.equal(limit.check(request({ id: "d", outputTokensMax: 1 }), 3 * WINDOW_MICROS).action, "reject");
});
