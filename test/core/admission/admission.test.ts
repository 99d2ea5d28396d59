import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AdmissionPolicy } from "#core/admission/admission.ts";
import { createAdmission, type LimitSpec } from "#core/admission/create.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request/request.ts";

function request(id: number, tenant: string, promptTokens: number): RouteRequest {
  return {
    id: String(id),
    model: "",
    tenant,
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: EMPTY_CHAIN,
    profile: "",
  };
}

const arrivals = fc.array(
  fc.record({
    gap: fc.integer({ min: 0, max: 400_000 }),
    tenant: fc.constantFrom("a", "b"),
    promptTokens: fc.integer({ min: 1, max: 40 }),
    /** Microseconds in flight. */
    service: fc.integer({ min: 1, max: 2_000_000 }),
  }),
  { maxLength: 60 },
);
type Arrivals = typeof arrivals extends fc.Arbitrary<infer T> ? T : never;

interface Admitted {
  readonly at: number;
  readonly tenant: string;
  readonly promptTokens: number;
  readonly endsAt: number;
}

/** Runs a policy over arrivals, as a host does: delayed ones are asked about again, admitted ones end. */
function run(policy: AdmissionPolicy, given: Arrivals): { admitted: Admitted[]; rejected: number } {
  const admitted: Admitted[] = [];
  let rejected = 0;
  let clock = 0;
  const due = given.map((one, id) => ({ ...one, id, at: (clock += one.gap), ends: false, asked: 0 }));
  while (due.length > 0) {
    due.sort((x, y) => x.at - y.at || Number(y.ends) - Number(x.ends) || x.id - y.id);
    const next = due.shift();
    assert.ok(next !== undefined);
    const asked = request(next.id, next.tenant, next.promptTokens);
    if (next.ends) {
      policy.ended(asked, next.at, { promptTokens: next.promptTokens, outputTokens: 0 });
      continue;
    }
    const verdict = policy.check(asked, next.at);
    if (verdict.action === "reject") rejected++;
    else if (verdict.action === "delay") {
      assert.ok(verdict.micros > 0 && next.asked < 10_000, "a delay passes");
      due.push({ ...next, at: next.at + Math.ceil(verdict.micros), asked: next.asked + 1 });
    } else {
      policy.admitted(asked, next.at);
      admitted.push({ ...next, endsAt: next.at + next.service });
      due.push({ ...next, at: next.at + next.service, ends: true });
    }
  }
  return { admitted, rejected };
}

const actions = fc.constantFrom("reject" as const, "delay" as const);

test("a token bucket never gives more than its size and what refilled since", () => {
  fc.assert(
    fc.property(arrivals, actions, fc.boolean(), (given, onEmpty, perTenant) => {
      const spec: LimitSpec = {
        type: "token-bucket",
        bucketTokens: 50,
        refillPerSecond: 60,
        cost: "prompt-tokens",
        per: perTenant ? "tenant" : "all",
        onEmpty,
      };
      const { admitted, rejected } = run(createAdmission(spec), given);
      assert.equal(admitted.length + rejected, given.length);
      if (onEmpty === "delay") assert.equal(rejected, 0, "all cost less than a bucket, and wait");
      for (const tenants of perTenant ? [["a"], ["b"]] : [["a", "b"]]) {
        const own = admitted.filter(({ tenant }) => tenants.includes(tenant));
        own.forEach((first, i) => {
          let taken = 0;
          for (const { at, promptTokens } of own.slice(i)) {
            taken += promptTokens;
            assert.ok(taken <= 50 + ((at - first.at) * 60) / 1e6 + 1e-6, `${taken} tokens in ${at - first.at} us`);
          }
        });
      }
    }),
  );
});

test("a request dearer than a full bucket is refused even where others wait", () => {
  const policy = createAdmission({
    type: "token-bucket",
    bucketTokens: 10,
    refillPerSecond: 1,
    cost: "prompt-tokens",
    per: "all",
    onEmpty: "delay",
  });
  assert.equal(policy.check(request(0, "", 11), 0).action, "reject");
  assert.equal(policy.check(request(1, "", 10), 0).action, "admit");
  policy.admitted(request(1, "", 10), 0);
  assert.deepEqual(policy.check(request(2, "", 2), 0), { action: "delay", micros: 2_000_000, reason: "bucket-empty" });
});

test("a rate limit holds in every window, and admits as soon as it may", () => {
  fc.assert(
    fc.property(arrivals, actions, (given, onLimit) => {
      const windowMicros = 1_000_000;
      const policy = createAdmission({ type: "rate-limit", requestsMax: 3, windowMicros, per: "all", onLimit });
      const { admitted, rejected } = run(policy, given);
      assert.equal(rejected, onLimit === "delay" ? 0 : given.length - admitted.length);
      admitted.forEach(({ at }, i) => {
        const inWindow = admitted.slice(0, i + 1).filter((other) => other.at > at - windowMicros);
        assert.ok(inWindow.length <= 3, `${inWindow.length} in a window`);
      });
    }),
  );
});

test("quota and cap bound what is in flight, and refuse nothing below it", () => {
  fc.assert(
    fc.property(arrivals, actions, fc.boolean(), (given, onLimit, capped) => {
      const common = { requestsMax: 2, onLimit, retryMicros: 50_000 };
      const policy = createAdmission(
        capped
          ? { type: "hard-cap", ...common }
          : { type: "tenant-quota", per: "tenant", byTenant: { b: 1 }, ...common },
      );
      const { admitted, rejected } = run(policy, given);
      assert.equal(admitted.length + rejected, given.length);
      for (const { at, tenant } of admitted) {
        const beside = admitted.filter(
          (other) => other.at <= at && other.endsAt > at && (capped || other.tenant === tenant),
        );
        // Admissions at one instant are counted together, so a bound that is broken shows.
        assert.ok(beside.length <= (capped || tenant === "a" ? 2 : 1), `${beside.length} in flight`);
      }
      if (given.length > 0) assert.ok(admitted.length > 0, "the first is always admitted");
    }),
  );
});

const LIMITS: readonly LimitSpec[] = [
  { type: "token-bucket", bucketTokens: 1, refillPerSecond: 1, cost: "requests", per: "all", onEmpty: "reject" },
  { type: "rate-limit", requestsMax: 1, windowMicros: 60_000_000, per: "all", onLimit: "reject" },
  { type: "tenant-quota", requestsMax: 1, per: "tenant", byTenant: {}, onLimit: "reject", retryMicros: 1 },
  {
    type: "usage-quota",
    requestsMax: 1,
    windowMicros: 60_000_000,
    per: "tenant",
    byTenant: {},
    outputTokensAssumed: 1,
    onLimit: "reject",
  },
  { type: "hard-cap", requestsMax: 1, onLimit: "reject", retryMicros: 1 },
];

for (const spec of LIMITS) {
  test(`${spec.type}: in the place of one of its kind it goes on from what that counted, of another it begins anew`, () => {
    const before = createAdmission(spec);
    before.admitted(request(1, "a", 1), 0);
    assert.equal(before.check(request(2, "a", 1), 1).action, "reject");
    for (const other of LIMITS) {
      const after = createAdmission(other, before);
      assert.equal(after.continues, other.type === spec.type, other.type);
      assert.equal(
        after.check(request(2, "a", 1), 1).action,
        other.type === spec.type ? "reject" : "admit",
        other.type,
      );
    }
  });
}
