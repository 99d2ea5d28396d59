import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ClusterGroups } from "#core/rollout/judge/cluster-groups.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";

const GROUPS = 32;

/** One that is a cluster of its own: the n-th goes into group n. */
function alone(isFailed: boolean): RolloutOutcome {
  return {
    arm: 0,
    window: 0,
    counted: true,
    stretch: 0,
    slice: 0,
    cluster: "",
    status: isFailed ? "failed" : "ok",
    times: { ttft: 1_000, tpot: undefined, e2e: 2_000 },
    endpoint: "a",
    promptTokens: 1,
    cachedTokens: 0,
  };
}

test("what a share's groups say of it is what leaving each out once shows", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 2, maxLength: 400 }), (failures) => {
      const groups = new ClusterGroups(1);
      const counts = Array.from({ length: Math.min(GROUPS, failures.length) }, () => ({ hits: 0, requests: 0 }));
      failures.forEach((isFailed, i) => {
        groups.add(alone(isFailed));
        const group = counts[i % GROUPS]!;
        group.requests++;
        if (isFailed) group.hits++;
      });
      const all = failures.length;
      const some = failures.filter(Boolean).length;
      const { share, requests, independent } = groups.shareOf(0, ({ counts: { failed, requests: of } }) => [
        failed,
        of,
      ]);
      assert.deepEqual([share, requests], [some / all, all]);
      let squares = 0;
      for (const one of counts) squares += ((some - one.hits) / (all - one.requests) - some / all) ** 2;
      const variance = ((counts.length - 1) / counts.length) * squares;
      const expected = variance > 1e-12 ? Math.min(all, (share * (1 - share)) / variance) : all;
      assert.ok(Math.abs(independent - expected) <= 1e-6 * expected, `${independent} and ${expected}`);
    }),
  );
});

test("one group alone shows nothing of how sure its share is, and groups of one size are as many as they are", () => {
  const groups = new ClusterGroups(1);
  const counted = () => groups.shareOf(0, ({ counts: { failed, requests } }) => [failed, requests]);
  groups.add(alone(true));
  assert.deepEqual(counted(), { share: 1, requests: 1, independent: 0, groups: 1 });
  for (let i = 1; i < 2 * GROUPS; i++) groups.add(alone(i % 2 === 0));
  assert.equal(counted().groups, GROUPS);
  const session = new ClusterGroups(1);
  for (let i = 0; i < 9; i++) session.add({ ...alone(i % 3 === 0), cluster: "one" });
  assert.equal(session.shareOf(0, ({ counts: { failed, requests } }) => [failed, requests]).independent, 0);
});
