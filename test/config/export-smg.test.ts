import assert from "node:assert/strict";
import { test } from "node:test";
import { exportSmg, SMG_KINDS, smgCommandLine } from "#config/export-smg.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";

const shipped = (name: string): ProfileSpec => loadProfile(name).spec;

function lineOf(spec: ProfileSpec, router: (typeof SMG_KINDS)[number]): string {
  const exported = exportSmg(spec, router);
  return exported.ok ? smgCommandLine(exported.value) : exported.reasons.join();
}

test("cache_aware with the thresholds that the profile has, in all of them", () => {
  const spec = shipped("smg-cache-aware");
  const [gate, match] = spec.filters;
  const filters = [
    { ...gate!, parameters: { ...gate!.parameters, absolute: 8 } },
    { ...match!, parameters: { ...match!.parameters, above: 0.55 } },
  ];
  for (const router of SMG_KINDS) {
    assert.equal(
      lineOf({ ...spec, filters }, router),
      "--policy cache_aware --cache-threshold 0.55 --balance-abs-threshold 8 --balance-rel-threshold 1.5",
    );
  }
});

test("policies without thresholds by the name that each router has for them", () => {
  for (const [profile, policy] of [
    ["round-robin", "round_robin"],
    ["random", "random"],
    ["power-of-two", "power_of_two"],
  ] as const)
    for (const router of SMG_KINDS) assert.equal(lineOf(shipped(profile), router), `--policy ${policy}`);
  const hashed = { ...shipped("consistent-hash"), filters: [] };
  assert.equal(lineOf(hashed, "smg"), "--policy consistent_hashing");
  assert.equal(lineOf(hashed, "vllm-router"), "--policy consistent_hash");
  assert.equal(lineOf(shipped("sticky"), "vllm-router"), "--policy sticky_least_loaded");
});

test("what no option states is refused: other parts, thresholds that are no whole numbers, what this router lacks", () => {
  const spec = shipped("smg-cache-aware");
  const [gate, match] = spec.filters;
  const half = { ...gate!, parameters: { ...gate!.parameters, absolute: 1.5 } };
  const refused: readonly ProfileSpec[] = [
    shipped("gnomon"),
    shipped("llm-d-pd"),
    shipped("sticky"),
    { ...spec, filters: [gate!] },
    { ...spec, filters: [half, match!] },
    { ...spec, scorers: [...spec.scorers, { plugin: "queue", weight: 1, parameters: {} }] },
    { ...spec, picker: { plugin: "random", parameters: {} } },
  ];
  for (const one of refused) assert.equal(exportSmg(one, "sglang-router").ok, false);
});
