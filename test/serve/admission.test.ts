import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { servePlan } from "#cli/serve/serve-options.ts";
import { nowMicros } from "#live/base/clock.ts";
import { startedGateway } from "./started-gateway.ts";
import { request } from "../core/state.ts";

const BY = { by: "test", dryRun: false, ifVersion: undefined };

test("a gateway with tight limits warms up, and its admission changes while it runs", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-admission-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  const limits = { rate: { type: "rate-limit", per: "all", requestsMax: 1, windowMillis: 86_400_000 } };
  const queue = { enabled: true, requestsMax: 1 };
  writeFileSync(file, stringify({ admission: { limits, saturation: { requestsMax: 1 }, shedAt: 0.1, queue } }));
  const stack = await startedGateway(
    servePlan({ config: file, set: ["listen.port=0", "listen.adminPort=0", "listen.warmUpMillis=200"] }, {}),
    {},
    ["warmUp"],
  );
  t.after(() => stack.close());
  const endpoint = { id: "a", models: ["m"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  stack.intake.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
  const asks = (id: string): string => {
    const decision = stack.intake.accept({ kind: "request-arrived", at: nowMicros(), request: request({ id }) });
    const finished = { kind: "request-finished", at: nowMicros(), requestId: id, outcome: "ok" } as const;
    stack.intake.accept({ ...finished, promptTokens: 1, cachedTokens: 0, outputTokens: 1 });
    return decision.kind === "routed" ? "routed" : decision.reason;
  };
  assert.deepEqual(["1", "2"].map(asks), ["routed", "rate-limit"]);
  const { admin } = stack.policy;
  const patch = { admission: { limits: { rate: { requestsMax: 3 } } } };
  assert.equal(admin.change(patch, "merge", BY).outcome, "applied");
  assert.deepEqual(["3", "4", "5"].map(asks), ["routed", "routed", "rate-limit"], "what was counted counts on");
  const wrong = admin.change({ admission: { limits: { rate: { per: "nobody" } } } }, "merge", BY);
  assert.ok(
    wrong.outcome === "refused" && /admission\.limits\.rate\.per/.test(wrong.problems.join()),
    JSON.stringify(wrong),
  );
  assert.equal(admin.change({ admission: { limits: null, shedAt: null } }, "merge", BY).outcome, "applied");
  assert.equal(asks("6"), "routed");
  assert.equal(admin.rollback(1, BY).outcome, "applied");
  assert.equal(asks("7"), "routed", "a limit that was gone begins anew");
  assert.equal(asks("8"), "rate-limit");
});
