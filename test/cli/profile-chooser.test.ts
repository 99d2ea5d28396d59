import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { routerSettings } from "../../src/cli/live-router.ts";
import { profileChooser } from "../../src/cli/profile-chooser.ts";
import { servePlan } from "../../src/cli/serve-options.ts";

test("a request's own choice counts where it is allowed, then its model's, then the default", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-chooser-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const ours = join(directory, "file.yaml");
  writeFileSync(ours, "name: ours\nextends: weighted\n");
  const set = [`routing.models={big: lmetric, small: ${ours}}`, `routing.profilesAllowed=[round-robin, ${ours}]`];
  const plan = servePlan({ set }, {});
  assert.deepEqual(Object.keys(routerSettings(plan).profiles).toSorted(), ["gnomon", "lmetric", "ours", "round-robin"]);
  const choose = profileChooser(plan);
  assert.equal(choose("other", ""), "");
  assert.equal(choose("big", ""), "lmetric");
  assert.equal(choose("small", ""), "ours");
  assert.equal(choose("big", "round-robin"), "round-robin");
  assert.equal(choose("other", "ours"), "ours");
  for (const refused of ["lmetric", "gnomon", "nobody", "__proto__"]) assert.equal(choose("big", refused), "lmetric");
  writeFileSync(ours, "name: gnomon\nextends: weighted\n");
  assert.throws(
    () => servePlan({ set }, {}),
    (error) => error instanceof ConfigError && /two that are named gnomon/.test(error.message),
  );
});
