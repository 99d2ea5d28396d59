import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { checkProfile } from "#core/profile/check.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { routerSettings } from "#serve/policy/live-router.ts";
import { profileChooser } from "#serve/policy/profile-chooser.ts";
import { servePlan } from "#cli/serve/serve-options.ts";

test("a request's own choice counts where it is allowed, then its model's, then the default", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-chooser-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const ours = join(directory, "file.yaml");
  writeFileSync(ours, "name: ours\nextends: weighted\n");
  const set = [`routing.models={big: lmetric, small: ${ours}}`, `routing.profilesAllowed=[round-robin, ${ours}]`];
  const plan = servePlan({ set }, {});
  assert.deepEqual(Object.keys(routerSettings(plan).profiles).toSorted(), ["gnomon", "lmetric", "ours", "round-robin"]);
  const choose = profileChooser(plan, () => assert.fail("nothing is composed"));
  assert.equal(choose("other", ""), "");
  assert.equal(choose("big", ""), "lmetric");
  assert.equal(choose("small", ""), "ours");
  assert.equal(choose("big", "round-robin"), "round-robin");
  assert.equal(choose("other", "ours"), "ours");
  for (const asked of ["lmetric", "gnomon", "nobody", "__proto__"]) {
    assert.deepEqual(choose("big", asked), {
      reason: "bad-request",
      message: `Expected one of round-robin, ours, ${ours} in routing-strategy, got "${asked}".`,
      param: "routing-strategy",
    });
  }
  writeFileSync(ours, "name: gnomon\nextends: weighted\n");
  assert.throws(
    () => servePlan({ set }, {}),
    (error) => error instanceof ConfigError && /two that are named gnomon/.test(error.message),
  );
});

test("requests may sum up allowed strategies as AIBrix writes them, so many and no more", () => {
  const plan = servePlan(
    { set: ["routing.profilesAllowed=[aibrix-least-request, aibrix-prefix-cache, vtc-basic]"] },
    {},
  );
  const defined = new Map<string, ProfileSpec>();
  const choose = profileChooser(plan, (name, spec) => {
    assert.ok(!defined.has(name), "a sum is defined once");
    defined.set(name, spec);
  });
  assert.equal(choose("m", "prefix-cache"), "aibrix-prefix-cache");
  assert.equal(choose("m", "least-request:3"), "aibrix-least-request");
  assert.equal(choose("m", "prefix-cache:2, least-request"), "prefix-cache:2,least-request:1");
  assert.equal(choose("m", "prefix-cache:2,least-request:1"), "prefix-cache:2,least-request:1");
  assert.deepEqual([...defined.keys()], ["prefix-cache:2,least-request:1"]);
  const spec = defined.get("prefix-cache:2,least-request:1")!;
  assert.deepEqual(checkProfile(spec), []);
  const refused = (asked: string, expected: RegExp) => {
    const answer = choose("m", asked);
    assert.ok(typeof answer !== "string" && answer.reason === "bad-request" && expected.test(answer.message), asked);
  };
  refused("prefix-cache:1,throughput:1", /Expected one of .*prefix-cache.*vtc-basic/);
  refused("prefix-cache:0.5,vtc-basic:1", /whole weight/);
  refused("prefix-cache:1,prefix-cache:2", /twice/);
  for (let weight = 2; weight < 40; weight++) choose("m", `prefix-cache:${weight},vtc-basic:1`);
  assert.equal(defined.size, 32);
  refused("prefix-cache:99,vtc-basic:1", /no further combination/);
  assert.equal(choose("m", "prefix-cache:2,vtc-basic:1"), "prefix-cache:2,vtc-basic:1", "the first ones stay");
});
