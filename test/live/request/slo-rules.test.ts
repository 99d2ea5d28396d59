import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestHeaders } from "#live/http/headers.ts";
import { SloRules } from "#live/request/slo-rules.ts";

const RULES = new SloRules({
  classes: { interactive: { ttftMicros: 500_000, tpotMicros: 50_000 }, batch: { ttftMicros: 60_000_000 } },
  tenants: { acme: "interactive" },
  models: { large: "batch" },
});
const headers = (more: Readonly<Record<string, string>> = {}) => new RequestHeaders(Object.entries(more).flat());

test("the class is the request's own, else its tenant's, else its model's", () => {
  const of = (sloClass: string, tenant: string, model: string) => RULES.of(headers(), { sloClass, tenant }, model);
  assert.deepEqual(of("batch", "acme", "m"), { sloClass: "batch", slo: { ttftMicros: 60_000_000 } });
  assert.deepEqual(of("", "acme", "large"), {
    sloClass: "interactive",
    slo: { ttftMicros: 500_000, tpotMicros: 50_000 },
  });
  assert.deepEqual(of("", "other", "large"), { sloClass: "batch", slo: { ttftMicros: 60_000_000 } });
  assert.deepEqual(of("", "other", "m"), { sloClass: "" });
  assert.deepEqual(of("unheard-of", "acme", "m"), { sloClass: "unheard-of" });
});

test("each target that a client states wins over its class's; a wrong one is refused", () => {
  const of = (more: Readonly<Record<string, string>>) =>
    RULES.of(headers(more), { sloClass: "interactive", tenant: "" }, "m");
  assert.deepEqual(of({ "x-gnomon-slo-ttft-ms": "80" }), {
    sloClass: "interactive",
    slo: { ttftMicros: 80_000, tpotMicros: 50_000 },
  });
  assert.match(of({ "x-gnomon-slo-tpot-ms": "fast" }) as string, /^x-gnomon-slo-tpot-ms: expected/);
});

test("the class * is for whatever has no other; without classes a request has what it states", () => {
  const rules = new SloRules({ classes: { "*": { tpotMicros: 9 } }, tenants: {}, models: {} });
  for (const sloClass of ["", "unheard-of"])
    assert.deepEqual(rules.of(headers(), { sloClass, tenant: "" }, "m"), { sloClass, slo: { tpotMicros: 9 } });
  const own = headers({ "x-gnomon-slo-ttft-ms": "1" });
  assert.deepEqual(new SloRules().of(own, { sloClass: "a", tenant: "" }, "m"), {
    sloClass: "a",
    slo: { ttftMicros: 1_000 },
  });
});
