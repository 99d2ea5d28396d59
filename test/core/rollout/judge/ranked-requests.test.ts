import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import { RankedRequests } from "#core/rollout/judge/ranked-requests.ts";

function outcomeOf(arm: number, ttft: number | undefined): RolloutOutcome {
  return {
    arm,
    window: 0,
    counted: true,
    stretch: 0,
    slice: 0,
    cluster: "",
    status: "ok",
    times: { ttft, tpot: undefined, e2e: undefined },
    endpoint: "a",
    promptTokens: 1,
    cachedTokens: undefined,
  };
}

/** Slow ones and all, by arm, of requests whose times a burst multiplies by up to a hundred. */
function slowOf(worse: (time: number, draw: number) => number): [slow: number, all: number][] {
  const random = randomFor(3, 1);
  const ranking = new RankedRequests();
  const counts: [number, number][] = [
    [0, 0],
    [0, 0],
  ];
  for (let i = 0; i < 50_000; i++) {
    const burst = i % 5_000 < 1_500 ? 100 : 1;
    const usual = (burst * 10_000) / (1 - random.next()) ** 0.3;
    const arm = random.below(2);
    const time = arm === 1 ? worse(usual, random.next()) : usual;
    for (const [one, isSlow] of ranking.add(outcomeOf(arm, time))) {
      counts[one.arm]![1]++;
      if (isSlow) counts[one.arm]![0]++;
    }
  }
  return counts;
}

test("arms that are alike have as many of the slowest; one whose requests are late now and then has most, in bursts or not", () => {
  const alike = slowOf((time) => time);
  const all = alike.reduce((sum, [, of]) => sum + of, 0);
  assert.equal(all, 50_000);
  const slowest = alike[0]![0] + alike[1]![0];
  assert.ok(slowest > 100 && slowest <= (50_000 / 500) * 2, `${slowest}`);
  assert.ok(Math.abs(alike[1]![0] / alike[0]![0] - 1) < 0.3, JSON.stringify(alike));
  // A burst takes a hundred times as long: over all requests the slowest are those of the bursts, of either arm.
  const late = slowOf((time, draw) => (draw < 0.03 ? 10 * time : time));
  assert.ok(late[1]![0] > 8 * Math.max(1, late[0]![0]), JSON.stringify(late));
});

test("an arm that takes a little longer has few more of the slowest where all wait as long as one another", () => {
  const slow = (worse: number) => {
    const random = randomFor(5, 1);
    const ranking = new RankedRequests();
    let slowest = 0;
    for (let i = 0; i < 50_000; i++) {
      // All wait for the queue; one in a hundred is a long one itself.
      const own = random.next() < 0.01 ? 400_000 * random.next() : 0;
      const time = (200_000 + 2_000 * random.next() + own) * (i % 2 === 1 ? worse : 1);
      for (const [{ arm }, isSlow] of ranking.add(outcomeOf(i % 2, time))) if (isSlow && arm === 1) slowest++;
    }
    return slowest;
  };
  const [alike, little] = [slow(1), slow(1.03)];
  assert.ok(alike > 5, `${alike}`);
  assert.ok(little < 1.5 * alike, `${little} of ${alike}`);
});

test("requests without a first token are not ranked, and what waits goes on after it was saved", () => {
  const [whole, first] = [new RankedRequests(), new RankedRequests()];
  const times = Array.from({ length: 1_200 }, (_, i) => (i % 7 === 0 ? undefined : (i * 7_919) % 1_000));
  const ranked = times.flatMap((time, i) => whole.add(outcomeOf(i % 2, time)));
  assert.equal(ranked.length, 1_000);
  const again = times.slice(0, 130).flatMap((time, i) => first.add(outcomeOf(i % 2, time)));
  const saved = JSON.parse(JSON.stringify(first.saved())) as ReturnType<RankedRequests["saved"]>;
  const second = new RankedRequests(saved);
  again.push(...times.slice(130).flatMap((time, i) => second.add(outcomeOf(i % 2, time))));
  assert.deepEqual(again, ranked);
});
