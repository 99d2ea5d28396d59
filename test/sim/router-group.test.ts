import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { profileNames } from "#config/native-profile.ts";
import type { RoutersOptions } from "#sim/router-group.ts";
import { busyRun, digest, outcomesDigest } from "./digest.ts";

const SEED = 5;
const run = (profile: string, routers?: RoutersOptions) =>
  busyRun(loadProfile(profile).spec, SEED, routers && { routers });
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

/** What a report does not carry: how many endpoints were cold at the peer's decision, and what its request found there. */
const OTHERWISE: ReadonlySet<string> = new Set(["llm-d-optimized", "gnomon-predicted", "gnomon-slo"]);

test("routers that know of each other at once decide as one, under every profile but those that read more", () => {
  for (const profile of profileNames()) {
    const same = outcomesDigest(run(profile)) === outcomesDigest(run(profile, routers(3, 0)));
    assert.equal(same, !OTHERWISE.has(profile), profile);
  }
});

test("without sharing fewer prompts are found in caches, and the later the news, the fewer", () => {
  const hits = (lag: number | undefined) => run("gnomon", routers(4, lag)).metrics.cacheHitRate.gpu;
  const none = hits(undefined);
  assert.ok(none < hits(1_000_000));
  assert.ok(none + 0.02 < hits(10_000));
});

test("a conversation stays with its router where connections do", () => {
  const spread = "session" as const;
  const one = run("gnomon", { count: 4, shareLagMicros: undefined, spread });
  const other = run("gnomon", { count: 4, shareLagMicros: undefined, spread: "round-robin" });
  assert.ok(one.metrics.cacheHitRate.gpu > other.metrics.cacheHitRate.gpu);
});
