import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import { checkParameters } from "#core/plugin/parameter.ts";
import type { Plugin } from "#core/plugin/plugin.ts";
import { filterContract } from "../filter/filter.contract.ts";
import { pickerContract } from "../picker/picker.contract.ts";
import { scorerContract } from "../scorer/scorer.contract.ts";

for (const [name, plugin] of Object.entries(CATALOG.scorers)) scorerContract(name, plugin);
for (const [name, plugin] of Object.entries(CATALOG.filters)) filterContract(name, plugin);
for (const [name, plugin] of Object.entries(CATALOG.pickers)) pickerContract(name, plugin);

test("every plugin states what it is, what it reads and where it comes from, and its defaults pass its own check", () => {
  const tables: readonly Readonly<Record<string, Plugin<unknown>>>[] = [
    CATALOG.filters,
    CATALOG.scorers,
    CATALOG.pickers,
  ];
  for (const table of tables) {
    for (const [name, plugin] of Object.entries(table)) {
      assert.ok(plugin.summary.length > 5 && plugin.source.length > 2 && plugin.reads.length > 0, name);
      const defaults = Object.fromEntries(
        Object.entries(plugin.parameters).map(([key, { default: value }]) => [key, value]),
      );
      assert.deepEqual(checkParameters(plugin.parameters, defaults, name), []);
    }
  }
});
