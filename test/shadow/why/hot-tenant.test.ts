import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { hotTenant } from "#shadow/why/hot-tenant.ts";
import { caseWorkload } from "../question/what-if-case.ts";

const [REQUEST] = caseWorkload();

/** Tenants with so many conversations of one turn, each of so many prompt tokens. */
function workloadOf(tenants: readonly (readonly [conversations: number, tokens: number])[]) {
  const all = tenants.flatMap(([count, promptTokens], tenant) =>
    Array.from({ length: count }, () => ({
      ...REQUEST!,
      tenant: `t${tenant}`,
      promptTokens,
      outputTokens: 0,
      session: "",
    })),
  );
  return all.map((request, index) => ({ ...request, index }));
}

const found = (...tenants: Parameters<typeof workloadOf>[0]) =>
  hotTenant(workloadOf(tenants), undefined, randomFor(1, 1));

test("a tenant with twice as much as the others have on average is hot, and one with a little less is not", () => {
  const hot = found([50, 1_000], [120, 1_000], [50, 1_000]);
  assert.deepEqual([hot?.tenant, hot?.factor, hot?.requests], ["t1", 2.4, 120]);
  assert.ok(Math.abs(hot!.share - 120 / 220) < 1e-9);
  assert.equal(found([50, 1_000], [95, 1_000], [50, 1_000]), undefined);
});

test("one that is only ahead by a few long conversations may be so by chance", () => {
  assert.equal(found([100, 1_000], [2, 150_000], [100, 1_000]), undefined);
  assert.equal(found([100, 1_000], [200, 1_500], [100, 1_000])?.tenant, "t1");
});

test("a tenant alone is in nobody's way", () => {
  assert.equal(found([100, 1_000]), undefined);
  assert.equal(found(), undefined);
});
