import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { profilesReport } from "../../src/cli/profiles.ts";

test("the list has every profile with what it reads and where it is from", () => {
  const report = profilesReport([], {});
  for (const name of profileNames()) {
    const { summary, source } = loadProfile(name);
    assert.ok(report.includes(`${name.padEnd(26)}${summary}\n`), name);
    assert.ok(report.includes(`; from ${source}\n`), name);
  }
  assert.equal(report.match(/\n +reads /g)?.length, profileNames().length);
});

test("the list of plugins has every parameter with its bounds, default and meaning", () => {
  const report = profilesReport([], { plugins: true });
  for (const [kind, plugins] of [
    ["filter", CATALOG.filters],
    ["scorer", CATALOG.scorers],
    ["picker", CATALOG.pickers],
  ] as const) {
    for (const [name, plugin] of Object.entries<{ parameters: object; summary: string }>(plugins)) {
      assert.ok(report.includes(`${kind} ${name}: ${plugin.summary}\n`), name);
      for (const parameter of Object.keys(plugin.parameters))
        assert.ok(report.includes(`    ${parameter} (`), `${name} ${parameter}`);
    }
  }
});

test("one profile in detail shows each value, given or default, and its weight", () => {
  const report = profilesReport(["llm-d"], {});
  assert.match(report, /^llm-d: .*\n {2}from .*; reads prefix-index, .*\n/);
  assert.match(report, /\n {2}scorer prefix-affinity weight 3 \(0\.429\): /);
  assert.match(report, /\n {6}reads prefix-index; from BLIS, Composable Scorer Framework/);
  assert.match(report, /\n {6}tieBreak = random \(one of lowest-id, .*; default lowest-id\): /);
  assert.match(report, /\n {6}epsilon = 0 \(number from 0 to 1; default 0\): /);
});

test("plugins are shown by name too, and a name that is none is refused with those that are", () => {
  const report = profilesReport(["lmetric", "random"], { plugins: true });
  assert.deepEqual(report.match(/^(filter|scorer|picker) \S+/gm), ["scorer lmetric:", "picker random:"]);
  assert.throws(
    () => profilesReport(["lmetrics"], { plugins: true }),
    (error) => error instanceof ConfigError && /--plugins: .*lmetric/.test(error.message),
  );
});

test("as JSON, a profile is what its file makes, and every plugin of the catalogue is listed", () => {
  assert.deepEqual(JSON.parse(profilesReport(["gnomon"], { json: true })), [loadProfile("gnomon")]);
  const plugins = JSON.parse(profilesReport([], { plugins: true, json: true })) as { kind: string; name: string }[];
  const count = [CATALOG.filters, CATALOG.scorers, CATALOG.pickers].reduce(
    (sum, table) => sum + Object.keys(table).length,
    0,
  );
  assert.equal(plugins.length, count);
});
