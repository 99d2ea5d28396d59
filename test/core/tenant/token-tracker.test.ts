import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { TokenTracker } from "#core/tenant/token-tracker.ts";

const MINUTES_5 = { windowMicros: 300_000_000, bucketMicros: 1_000_000 };
const WEIGHTS = { inputWeight: 1, outputWeight: 2 };

function tracker(given: Partial<ConstructorParameters<typeof TokenTracker>[0]> = {}): TokenTracker {
  return new TokenTracker({ ...MINUTES_5, ...WEIGHTS, ...given });
}

function serve(to: TokenTracker, tenant: string, at: number, input: number, output: number): number {
  to.add(tenant, at, to.weigh(input, output));
  return to.total(tenant, at);
}

test("AIBrix: weighted tokens add up per tenant", () => {
  const plain = tracker();
  assert.equal(serve(plain, "a", 0, 10, 15), 40);
  assert.equal(serve(plain, "a", 1, 5, 10), 65);
  assert.equal(serve(plain, "b", 1, 100, 50), 200);
  assert.equal(serve(plain, "c", 1, 50, 25), 100);
  assert.equal(serve(plain, "c", 2, 0, 0), 100);
  assert.equal(serve(plain, "c", 2, -10, -5), 100, "negative counts are none");
  assert.equal(serve(tracker({ inputWeight: 2, outputWeight: 3 }), "a", 0, 2, 4), 16);
  assert.equal(serve(tracker({ inputWeight: 2, outputWeight: 0.5 }), "a", 0, 10, 20), 30);
  assert.equal(plain.total("nobody", 5), 0);
});

test("AIBrix: what is older than the window is gone", () => {
  const short = tracker({ windowMicros: 100_000, bucketMicros: 1_000 });
  serve(short, "a", 0, 10, 15);
  assert.equal(serve(short, "a", 10_000, 5, 5), 55);
  assert.equal(short.total("a", 10_000 + 100_000), 15);
  assert.equal(short.total("a", 10_000 + 102_000), 0);
});

test("AIBrix: the span is that of tenants with tokens in the window", () => {
  const plain = tracker({ windowMicros: 1_000_000 });
  assert.equal(plain.span(0), undefined);
  plain.add("user1", 0, 500);
  assert.deepEqual(plain.span(0), { min: 500, max: 500 });
  plain.add("user2", 0, 1000);
  assert.deepEqual(plain.span(0), { min: 500, max: 1000 });
  assert.equal(plain.span(2_100_000), undefined);
  const ten = tracker();
  for (let id = 0; id < 10; id++) ten.add(`u${id}`, 0, 50 * (id + 1));
  assert.deepEqual(ten.span(0), { min: 50, max: 500 });
});

test("the span that is kept up is the one that all tenants have, through charges, corrections and expiry", () => {
  const seed = 12;
  const random = randomFor(seed, 1);
  const kept = tracker({ windowMicros: 20_000, bucketMicros: 1_000 });
  const tenants = Array.from({ length: 9 }, (_, i) => `t${i}`);
  let at = 0;
  for (let step = 0; step < 20_000; step++) {
    at += random.below(4) === 0 ? random.below(3_000) : 0;
    const amount = random.below(5) === 0 ? -random.below(200) : random.below(300);
    kept.add(tenants[random.below(tenants.length)]!, at, amount);
    if (random.below(3) > 0) continue;
    const totals = tenants.map((tenant) => kept.total(tenant, at)).filter((total) => total > 0);
    const expected = totals.length === 0 ? undefined : { min: Math.min(...totals), max: Math.max(...totals) };
    assert.deepEqual(kept.span(at), expected, `seed ${seed}, step ${step}`);
  }
});

test("what is kept is bounded, and the span is that of the tenants that are kept, however many come and go", () => {
  const kept = tracker();
  const [TENANTS, KEPT_AT_LEAST] = [50_000, 14_336];
  for (let i = 0; i < TENANTS; i++) kept.add(`t${i}`, i, i + 1);
  const { min, max } = kept.span(TENANTS)!;
  assert.equal(max, TENANTS);
  assert.ok(min > TENANTS - 16_384 - 1 && min <= TENANTS - KEPT_AT_LEAST + 1, `${min}`);
  assert.equal(kept.total(`t${min - 1}`, TENANTS), min);
  assert.equal(kept.total(`t${min - 2}`, TENANTS), 0);
  assert.equal(kept.span(TENANTS + 302_000_000), undefined);
});
