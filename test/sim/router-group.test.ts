import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadProfile } from "#config/profile-file.ts";
import { profileNames } from "#config/native-profile.ts";
import type { SimulationResult } from "#sim/simulate.ts";
import { ROUTER_SPREADS, type RoutersOptions } from "#sim/setting/routers-options.ts";
import { busyRun, digest, outcomesDigest } from "./digest.ts";

const SEED = 5;
const CASES_PER_PROFILE = 1;
/** Each simulation once, by what it was made of. */
const made = new Map<string, SimulationResult>();
const run = (profile: string, routers?: RoutersOptions): SimulationResult => {
  const key = JSON.stringify([profile, routers]);
  const result = made.get(key) ?? busyRun(loadProfile(profile).spec, SEED, routers && { routers });
  made.set(key, result);
  return result;
};
const routers = (count: number, shareLagMicros: number | undefined): RoutersOptions => ({
  count,
  shareLagMicros,
  spread: "round-robin",
});

test("one router, whatever its lag, is today's run to the byte", () => {
  for (const lag of [undefined, 0, 100_000]) {
    assert.equal(digest(run("gnomon", routers(1, lag))), digest(run("gnomon")));
  }
});

test("routers that know of each other at once decide as one, under every profile", () => {
  for (const profile of profileNames()) {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 20, max: 50 }),
        fc.integer({ min: 2, max: 4 }),
        fc.constantFrom(...ROUTER_SPREADS),
        (seed, conversations, count, spread) => {
          const { spec } = loadProfile(profile);
          const one = busyRun(spec, seed, {}, conversations);
          const several = busyRun(spec, seed, { routers: { count, shareLagMicros: 0, spread } }, conversations);
          assert.equal(outcomesDigest(several), outcomesDigest(one), profile);
        },
      ),
      { numRuns: CASES_PER_PROFILE, examples: [[8, 30, 3, "round-robin"]] },
    );
  }
});

test("without sharing fewer prompts are found in caches, and the later the news, the fewer", () => {
  const hits = (lag: number | undefined) => run("gnomon-added", routers(4, lag)).metrics.cacheHitRate.gpu;
  const none = hits(undefined);
  assert.ok(none < hits(1_000_000));
  assert.ok(none + 0.02 < hits(10_000));
});

test("a conversation stays with its router where connections do", () => {
  const spread = "session" as const;
  const one = run("gnomon-added", { count: 4, shareLagMicros: undefined, spread });
  const other = run("gnomon-added", { count: 4, shareLagMicros: undefined, spread: "round-robin" });
  assert.ok(one.metrics.cacheHitRate.gpu > other.metrics.cacheHitRate.gpu);
});
