import assert from "node:assert/strict";
import { test } from "node:test";
import { createPriority } from "#core/priority/create.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request/request.ts";

function request(sloClass: string, tenant: string): RouteRequest {
  return {
    id: "r",
    model: "",
    tenant,
    session: "",
    sloClass,
    priority: 0,
    promptTokens: 1,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: EMPTY_CHAIN,
    profile: "",
  };
}

test("a higher score is a lower priority of vLLM, which runs earlier", () => {
  const byClass = createPriority({ type: "slo-based", scores: { realtime: 100, batch: 10 }, defaultScore: 50 });
  const order = ["batch", "unheard of", "realtime"].map((name) => byClass.priorityOf(request(name, ""), 0));
  assert.deepEqual(order, [-10, -50, -100]);
  const byTenant = createPriority({ type: "tenant-priority", scores: { gold: 2 }, defaultScore: 1 });
  assert.ok(byTenant.priorityOf(request("", "gold"), 0) < byTenant.priorityOf(request("", "other"), 0));
  const constant = createPriority({ type: "constant", score: 3 });
  assert.equal(constant.priorityOf(request("a", "b"), 0), constant.priorityOf(request("c", "d"), 9e9));
});

test("with deadlines, who must answer first comes first, whoever came first", () => {
  const policy = createPriority({
    type: "deadline-aware",
    targetMillis: { realtime: 200, batch: 60_000 },
    defaultTargetMillis: 1000,
  });
  const patient = policy.priorityOf(request("batch", ""), 0);
  const urgent = policy.priorityOf(request("realtime", ""), 59_700_000);
  const late = policy.priorityOf(request("realtime", ""), 59_900_000);
  assert.ok(urgent < patient && patient < late);
});

test("a name that every object has is no score", () => {
  const policy = createPriority({ type: "slo-based", scores: {}, defaultScore: 1 });
  assert.equal(policy.priorityOf(request("constructor", ""), 0), -1);
});
