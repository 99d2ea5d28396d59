import assert from "node:assert/strict";
import { test } from "node:test";
import { finished } from "#core/base/finished.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { readDecidedRun } from "#shadow/reproduce/decided-run.ts";
import { reproduce, type Reproduction } from "#shadow/reproduce/reproduce.ts";
import { foreignTraffic, type ForeignTraffic, itemsOf } from "./foreign-traffic.ts";

const PROFILES = profileNames().map(loadProfile);
const REQUESTS = 250;

const shipped = (name: string): ProfileSpec => loadProfile(name).spec;

async function reproduced(
  traffic: Omit<ForeignTraffic, "requests" | "seed"> & { readonly requests?: number },
  names?: readonly string[],
) {
  const items = foreignTraffic({ requests: REQUESTS, seed: 7, ...traffic });
  const run = await readDecidedRun(itemsOf(items), Infinity);
  const profiles = names === undefined ? PROFILES : names.map(loadProfile);
  const steps = reproduce({ run, profiles, candidatesMax: 600 });
  return finished(steps);
}

const parameterOf = ({ best }: Reproduction, plugin: string, name: string) =>
  [...best.spec.filters, ...best.spec.scorers].find((one) => one.plugin === plugin)?.parameters[name];

test("round-robin: every decision, whatever the order and wherever it began", async () => {
  const { best } = await reproduced({ spec: shipped("round-robin") });
  assert.equal(best.base, "round-robin");
  assert.deepEqual([best.heldOut.share, best.heldOut.own], [1, 1]);
});

test("a cache-aware router with thresholds of its own: found among all profiles, with the one that its decisions show", async () => {
  const spec = shipped("smg-cache-aware");
  const [gate, match] = spec.filters;
  const theirs = {
    ...spec,
    filters: [
      { ...gate!, parameters: { ...gate!.parameters, absolute: 4 } },
      { ...match!, parameters: { ...match!.parameters, above: 0.6 } },
    ],
  };
  const found = await reproduced({ spec: theirs, gapMicros: 20_000 });
  const filters = found.best.spec.filters.map(({ plugin }) => plugin);
  assert.deepEqual(filters, ["imbalance-gate", "prefix-match"], found.best.base);
  assert.ok(found.best.heldOut.share > 0.95, `${found.best.heldOut.share}`);
  assert.equal(parameterOf(found, "prefix-match", "above"), 0.6);
});

test("weights: a router of llm-d's scorers with others than its own", async () => {
  const spec = shipped("llm-d");
  const theirs = { ...spec, scorers: spec.scorers.map((one, i) => ({ ...one, weight: [1, 4, 1][i]! })) };
  const { best } = await reproduced({ spec: theirs });
  const asShipped = await reproduced({ spec: theirs }, ["random"]);
  assert.ok(best.heldOut.share > 0.93 * best.heldOut.own, `${best.base} ${best.heldOut.share} of ${best.heldOut.own}`);
  assert.ok(asShipped.best.heldOut.share < 0.3);
});

test("gauges: one that reads them every five seconds is not taken for one that reads all", async () => {
  const spec = { ...shipped("vllm-internal") };
  const { best, readings } = await reproduced({ spec, readsEveryMicros: 5_000_000 }, ["vllm-internal"]);
  assert.equal(best.gauges, "every 5 s");
  const recorded = readings.find(({ gauges }) => gauges === "as recorded")!;
  assert.ok(best.heldOut.share > recorded.heldOut.share + 0.1, `${best.heldOut.share} ${recorded.heldOut.share}`);
});

test("power of two: as often as it would itself, which no policy without chance reaches", async () => {
  const { best } = await reproduced({ spec: shipped("power-of-two") });
  assert.equal(best.base, "power-of-two");
  const { share, own, blind } = best.heldOut;
  assert.ok(Math.abs(share - own) < 0.05, `${share} ${own}`);
  assert.ok(own > blind + 0.05);
});

test("draws without a reason are explained by nothing", async () => {
  const { best } = await reproduced({ spec: shipped("random") });
  assert.ok(best.heldOut.gain < 0.02, `${best.base} ${best.heldOut.gain}`);
});

test("a hash that nobody knows: sessions stay where they were seen", async () => {
  const consistent = { ...shipped("consistent-hash"), filters: [] };
  const { best, differences } = await reproduced({ spec: consistent, isRenamed: true, requests: 400 });
  const affinity = best.spec.filters.map(({ plugin }) => plugin);
  assert.ok(affinity.includes("session-pin") || affinity.includes("warm-session"), affinity.join());
  // Where a session's first turn went can only be guessed, a later one's is known.
  const { share, own } = best.heldOut;
  assert.ok(share > 0.8 && share > 0.98 * own && own < 0.95, `${share} ${own}`);
  assert.ok(differences.decisions < 10);
});

test("what differs has a signal: a router that takes the least busy, held against one that looks at nothing", async () => {
  const { differences } = await reproduced({ spec: shipped("load-only") }, ["round-robin"]);
  assert.ok(differences.decisions > 20);
  const { theirs, ours } = differences.signals.find(({ signal }) => signal === "requests in flight")!;
  assert.deepEqual([ours, theirs > differences.decisions / 4], [0, true]);
});

test("parts: without what it decides by, a policy explains less", async () => {
  const { best, without } = await reproduced({ spec: shipped("smg-cache-aware") }, ["smg-cache-aware"]);
  const matchless = without.find(({ changes }) => changes.at(-1) === "without prefix-match")!;
  assert.ok(matchless.heldOut.share < best.heldOut.share - 0.2);
});
