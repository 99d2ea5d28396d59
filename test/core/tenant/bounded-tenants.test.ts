import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { BoundedTenants } from "#core/tenant/bounded-tenants.ts";

const TENANTS_MAX = 10_000;

test("the longest unused tenant is forgotten, by a model that lists them in order of their last use", () => {
  const random = randomFor(7, 1);
  const tenants = new BoundedTenants((at) => ({ since: at }));
  const model = new Map<string, { since: number }>();
  let forgotten = 0;
  for (let at = 0; at < 60_000; at++) {
    const tenant = `t${random.below(at < 20_000 ? 9_000 : 14_000)}`;
    const known = model.get(tenant);
    model.delete(tenant);
    model.set(tenant, known ?? { since: at });
    if (model.size > TENANTS_MAX) {
      // The first that is there; a walk over what was taken out is all the same here.
      for (const oldest of model.keys()) {
        model.delete(oldest);
        forgotten++;
        break;
      }
    }
    assert.deepEqual(tenants.of(tenant, at), model.get(tenant));
    assert.equal(tenants.peek(tenant)?.since, model.get(tenant)?.since);
  }
  assert.equal(tenants.forgotten, forgotten);
  assert.ok(forgotten > 0);
  assert.deepEqual([...tenants.entries()], [...model]);
});
