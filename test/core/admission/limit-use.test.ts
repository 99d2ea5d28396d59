import assert from "node:assert/strict";
import { test } from "node:test";
import type { LimitUse } from "#core/admission/limit-use.ts";
import { createAdmission, type LimitSpec } from "#core/admission/create.ts";
import { ModelCap } from "#core/admission/model-cap.ts";
import { request } from "../state.ts";

const WINDOW = { windowMicros: 1_000, onLimit: "reject" } as const;
const HELD = { retryMicros: 1, onLimit: "reject" } as const;
const ASKED = request({ id: "a", tenant: "a", user: "u", model: "m", promptTokens: 30, outputTokensMax: 10 });
const OTHER = request({ id: "b", tenant: "b", model: "m", promptTokens: 5, outputTokensMax: 1 });

/** What is used after two requests of one user of tenant a and one of tenant b, at a time. */
function uses(spec: LimitSpec, at: number): LimitUse[] {
  const limit = createAdmission(spec);
  for (const one of [ASKED, ASKED, OTHER]) limit.admitted(one, 0);
  const before = JSON.stringify(limit.check(ASKED, at));
  const found = limit.uses(at);
  assert.equal(JSON.stringify(limit.check(ASKED, at)), before, "looking changes nothing");
  return found.toSorted((x, y) => x.subject.localeCompare(y.subject));
}

test("what is shown of a limit is what it counts, by subject, beside that subject's bound", () => {
  const requests = (subject: string, used: number, max: number) => ({ subject, of: "requests", used, max }) as const;
  const quota = { type: "tenant-quota", requestsMax: 9, byTenant: { b: 2 }, ...HELD } as const;
  assert.deepEqual(uses({ ...quota, per: "tenant" }, 0), [requests("a", 2, 9), requests("b", 1, 2)]);
  assert.deepEqual(uses({ ...quota, per: "user" }, 0), [requests("a\nu", 2, 9), requests("b", 1, 2)]);
  assert.deepEqual(uses({ ...quota, per: "all" }, 0), [requests("", 3, 9)]);
  assert.deepEqual(uses({ type: "hard-cap", requestsMax: 4, ...HELD }, 0), [requests("", 3, 4)]);
  const rate = { type: "rate-limit", requestsMax: 5, per: "tenant", ...WINDOW } as const;
  assert.deepEqual(uses(rate, 999), [requests("a", 2, 5), requests("b", 1, 5)]);
  assert.deepEqual(uses(rate, 1_000), [requests("a", 0, 5), requests("b", 0, 5)]);
  const bucket = { bucketTokens: 100, refillPerSecond: 1_000, cost: "prompt-tokens", onEmpty: "reject" } as const;
  const [a] = uses({ type: "token-bucket", per: "tenant", ...bucket }, 10_000);
  assert.deepEqual(a, { subject: "a", of: "prompt-tokens", used: 50, max: 100 });
});

test("a quota of usage shows each count that has a bound, as a window that ends now has it", () => {
  const byTenant = { b: { requestsMax: 7 } };
  const usage = { type: "usage-quota", per: "tenant", outputTokensAssumed: 0, byTenant, ...WINDOW } as const;
  const both = { ...usage, promptTokensMax: 200, outputTokensMax: 50 };
  const of = (used: number) => [
    { subject: "a", of: "prompt-tokens", used: 60 * used, max: 200 },
    { subject: "a", of: "output-tokens", used: 20 * used, max: 50 },
    { subject: "b", of: "requests", used, max: 7 },
  ];
  assert.deepEqual(uses(both, 0), of(1));
  assert.deepEqual(uses(both, 1_500), of(0.5));
  assert.deepEqual(uses(both, 5_000), of(0));
});

test("caps of models are shown by model and role", () => {
  const cap = new ModelCap({ requestsMax: 3, byModel: { "m/decode": 2 }, roleLabel: "role" });
  cap.take(cap.permitFor(ASKED, { role: "decode" }));
  cap.take(cap.permitFor(ASKED, {}));
  assert.deepEqual(cap.uses(), [
    { subject: "m/decode", of: "requests", used: 1, max: 2 },
    { subject: "m", of: "requests", used: 1, max: 3 },
  ]);
});

test("a quota of 0 lets one tenant in no more, whatever was used, and the others as before", () => {
  const specs: LimitSpec[] = [
    { type: "tenant-quota", per: "tenant", requestsMax: 9, byTenant: { a: 0 }, ...HELD },
    {
      type: "usage-quota",
      per: "tenant",
      outputTokensAssumed: 0,
      requestsMax: 9,
      byTenant: { a: { requestsMax: 0 } },
      ...WINDOW,
    },
  ];
  for (const spec of specs) {
    const limit = createAdmission(spec);
    assert.deepEqual([limit.check(ASKED, 0).action, limit.check(OTHER, 0).action], ["reject", "admit"], spec.type);
  }
});
