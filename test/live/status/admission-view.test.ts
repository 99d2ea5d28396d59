import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import { Router } from "#core/router.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { admissionView } from "#live/status/admission-view.ts";
import { request } from "../../core/state.ts";

test("who is nearest to a limit comes first, of as many as there are, and who waits is shown by class", () => {
  const limit = { type: "tenant-quota", per: "user", requestsMax: 50, byTenant: {}, onLimit: "reject", retryMicros: 1 };
  const router = new Router({
    seed: 1,
    profiles: { default: loadProfile("gnomon").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
    admission: { ...ADMIT_ALL, limits: { few: limit } } as typeof ADMIT_ALL,
  });
  const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  let asked = 0;
  for (let user = 1; user <= 30; user++) {
    for (let i = 0; i < user; i++) {
      const one = request({ id: `r${asked++}`, tenant: "t", user: `u${user}` });
      router.accept({ kind: "request-arrived", at: asked, request: one });
    }
  }
  const { queue, limits } = admissionView(router, asked);
  assert.deepEqual(queue, { requests: 0, byClass: {} });
  assert.equal(limits.length, 1);
  const { name, type, subjects, most } = limits[0]!;
  assert.deepEqual([name, type, subjects, most.length], ["few", "tenant-quota", 30, 20]);
  assert.deepEqual(most[0], { subject: "t/u30", of: "requests", used: 30, max: 50 });
  assert.equal(most[19]?.subject, "t/u11");
});
