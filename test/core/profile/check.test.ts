import assert from "node:assert/strict";
import { test } from "node:test";
import { checkProfile } from "#core/profile/check.ts";
import { loadProfile } from "#config/profile-file.ts";

const DEFAULT_PROFILE = loadProfile("gnomon").spec;

const picker = { plugin: "max-score" };
const scorer = { plugin: "queue-depth", weight: 1 };
const paths = (spec: unknown) => checkProfile(spec).map(({ path }) => path);

test("the default profile is well formed", () => assert.deepEqual(checkProfile(DEFAULT_PROFILE), []));

test("each fault is reported with its path, all of them at once", () => {
  assert.deepEqual(
    paths({
      filters: [{ plugin: "imbalanced" }, { plugin: "imbalance", parameters: { factor: 0.5, slak: 1 } }],
      scorers: [scorer, { ...scorer, weight: -1 }],
      picker: { plugin: "max-score", parameters: { tieBreak: "coin" } },
      extra: 1,
    }),
    [
      "extra",
      "filters[0].plugin",
      "filters[1].parameters.factor",
      "filters[1].parameters.slak",
      "scorers[1].plugin",
      "scorers[1].weight",
      "picker.parameters.tieBreak",
    ],
  );
});

test("messages name the accepted values", () => {
  const message = (spec: unknown) => checkProfile(spec)[0]?.message ?? "";
  assert.match(
    message({ scorers: [{ plugin: "prefix", weight: 1 }], picker }),
    /prefix-affinity.*queue-depth.*kv-utilization.*load-balance.*got "prefix"/,
  );
  assert.match(
    message({ scorers: [scorer], picker: { plugin: "max-score", parameters: { tieBreak: "coin" } } }),
    /lowest-id, random, stable-hash, rotate/,
  );
  assert.match(
    message({ scorers: [scorer], picker: { plugin: "max-score", parameters: { epsilon: 2 } } }),
    /from 0 to 1, got 2/,
  );
});

test("a picker that follows totals needs a scorer; one that does not, does not", () => {
  assert.deepEqual(paths({ picker }), ["scorers"]);
  assert.deepEqual(paths({ picker: { plugin: "round-robin" } }), []);
});

test("anything that is not a profile is refused, not thrown on", () => {
  for (const spec of [
    undefined,
    null,
    3,
    "x",
    [],
    {},
    { picker: 3 },
    { picker, scorers: 3 },
    { picker, filters: [3] },
    { picker, scorers: [{ plugin: "queue-depth", weight: 1, parameters: [] }] },
  ]) {
    assert.ok(checkProfile(spec).length > 0, JSON.stringify(spec));
  }
  assert.ok(paths({ scorers: [{ plugin: "constructor", weight: 1 }], picker }).includes("scorers[0].plugin"));
});
