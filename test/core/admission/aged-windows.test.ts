import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AdmissionPolicy } from "#core/admission/admission.ts";
import { RateLimit } from "#core/admission/rate-limit.ts";
import { TokenBucket } from "#core/admission/token-bucket.ts";
import { UsageQuota } from "#core/admission/usage-quota.ts";
import { request } from "../state.ts";

const WINDOW_MICROS = 1_000_000;
const LIMITS: Readonly<Record<string, () => AdmissionPolicy>> = {
  "usage-quota": () =>
    new UsageQuota({
      windowMicros: WINDOW_MICROS,
      per: "tenant",
      requestsMax: 20,
      byTenant: {},
      outputTokensAssumed: 0,
      onLimit: "reject",
    }),
  "rate-limit": () => new RateLimit({ requestsMax: 12, windowMicros: WINDOW_MICROS, per: "tenant", onLimit: "reject" }),
  "token-bucket": () =>
    new TokenBucket({ bucketTokens: 20, refillPerSecond: 4, cost: "requests", per: "tenant", onEmpty: "reject" }),
};

for (const [name, make] of Object.entries(LIMITS)) {
  test(`${name}: what was kept while no gateway was there counts as it would had one stayed, by whatever clock`, () => {
    const times = fc.array(fc.integer({ min: 0, max: 3 * WINDOW_MICROS }), { maxLength: 12 });
    const ages = fc.integer({ min: 0, max: 3 * WINDOW_MICROS });
    fc.assert(
      fc.property(times, ages, fc.integer({ min: 0, max: 5 * WINDOW_MICROS }), (admitted, ageMicros, clock) => {
        const stayed = make();
        for (const at of admitted.toSorted((a, b) => a - b)) stayed.admitted(request({ id: "r", tenant: "t" }), at);
        const writtenAt = 3 * WINDOW_MICROS;
        const came = make();
        for (const window of stayed.windows!.list(writtenAt)) came.windows!.raise(clock, { ...window, ageMicros });
        const used = (limit: AdmissionPolicy, at: number) => limit.uses(at)[0]?.used ?? 0;
        for (const later of [0, WINDOW_MICROS / 3, WINDOW_MICROS, 2 * WINDOW_MICROS]) {
          const difference = used(came, clock + later) - used(stayed, writtenAt + ageMicros + later);
          // Counts are written as whole numbers.
          assert.ok(Math.abs(difference) <= 0.5 + 1e-6, `${difference} at ${later}`);
        }
      }),
    );
  });
}

test("what was used and is long over makes no state", () => {
  for (const make of Object.values(LIMITS)) {
    const limit = make();
    limit.admitted(request({ id: "r", tenant: "t" }), 0);
    const came = make();
    for (const window of limit.windows!.list(0)) came.windows!.raise(0, { ...window, ageMicros: 9 * WINDOW_MICROS });
    assert.deepEqual(came.uses(0), [], limit.name);
  }
});
