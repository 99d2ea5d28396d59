import assert from "node:assert/strict";
import { test } from "node:test";
import { servePlan } from "#cli/serve/serve-options.ts";
import { configOver, policyDocument } from "#config/policy-document.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import { scrapeMillis, tooSlowFor } from "#serve/policy/live-scrape.ts";

const planOf = (given: Record<string, unknown>) => servePlan(given, {});

test("a gateway reads gauges as often as its profiles are made for, and a configuration that reads them less often is warned of", () => {
  assert.equal(scrapeMillis(planOf({})), 1_000);
  const llmD = planOf({ profile: "llm-d" });
  assert.equal(scrapeMillis(llmD), 50);
  assert.deepEqual(tooSlowFor(llmD, 50), []);
  const slow = planOf({ profile: "llm-d", scrapeInterval: "1000" });
  assert.equal(scrapeMillis(slow), 1_000);
  const [event] = tooSlowFor(slow, scrapeMillis(slow));
  assert.equal(event?.kind, "signals-slow");
  assert.match(JSON.stringify(event), /llm-d is made for gauges every 50 ms.*every 1000 ms \(scrape\.intervalMillis\)/);
  assert.equal(
    scrapeMillis(planOf({ profile: "production-stack-session" })),
    1_000,
    "who lives shows on the same page",
  );
});

test("a profile's signals outlive a policy document, and a profile that extends it in one has them", () => {
  const { config, ...resolved } = planOf({ profile: "llm-d" });
  const again = configOver(config, policyDocument(config, resolved), {}, "merge");
  const read = resolveProfiles(again, { environment: {}, readsFiles: false });
  assert.deepEqual(read.profile, { ...resolved.profile, summary: "", source: "" });
  const asked = { profiles: { mine: { extends: "llm-d", filters: [] } }, routing: { profile: "mine" } };
  const mine = configOver(config, policyDocument(config, resolved), asked, "merge");
  assert.equal(scrapeMillis({ config: mine, ...resolveProfiles(mine, { environment: {}, readsFiles: false }) }), 50);
});
