import assert from "node:assert/strict";
import { test } from "node:test";
import { prefixAffinityGate } from "#core/filter/prefix-affinity-gate.ts";
import { randomFor } from "#core/base/random.ts";
import { chain, request, snapshot } from "../state.ts";

const OPTIONS = {
  affinityThreshold: 0.8,
  explorationProbability: 0,
  maxTtftPenaltyMillis: 5_000,
  peakPrefillTokensPerSecond: 10_000,
};
const ASKED = request({ id: "r", blocks: chain(1, 10) });

interface Candidate {
  readonly hitBlocks: number;
  readonly prefillTokensQueued?: number;
}

function kept(
  candidates: readonly Candidate[],
  options: Partial<typeof OPTIONS> = {},
  random = randomFor(1, 1),
): string {
  const snapshots = candidates.map((candidate, i) => snapshot({ id: "abc"[i]!, ...candidate }));
  const keep = new Uint8Array(snapshots.length).fill(1);
  prefixAffinityGate.create("gate", { ...OPTIONS, ...options }).filter(ASKED, snapshots, keep, random);
  return snapshots.flatMap(({ id }, i) => (keep[i] === 1 ? [id] : [])).join("");
}

test("those with at least the threshold of the prompt stay, if there are any and not only those", () => {
  assert.equal(kept([{ hitBlocks: 8 }, { hitBlocks: 7 }, { hitBlocks: 10 }]), "ac");
  assert.equal(kept([{ hitBlocks: 7 }, { hitBlocks: 0 }]), "ab");
  assert.equal(kept([{ hitBlocks: 0 }, { hitBlocks: 10 }], { affinityThreshold: 0 }), "ab", "a threshold of 0 is none");
});

test("a queue in front of them that costs more than the penalty lets all stay; one that costs just that does not", () => {
  const queued = (prefillTokensQueued: number) => [
    { hitBlocks: 10, prefillTokensQueued },
    { hitBlocks: 0, prefillTokensQueued: 1_000 },
  ];
  assert.equal(kept(queued(51_000)), "a");
  assert.equal(kept(queued(51_001)), "ab");
  assert.equal(kept(queued(51_001), { maxTtftPenaltyMillis: 0 }), "a", "a penalty of 0 is no bound");
});

test("the share of requests that explores is as configured", () => {
  const random = randomFor(7, 1);
  let explored = 0;
  for (let i = 0; i < 4_000; i++)
    explored += Number(kept([{ hitBlocks: 10 }, { hitBlocks: 0 }], { explorationProbability: 0.25 }, random) === "ab");
  assert.ok(explored > 900 && explored < 1_100, `${explored} of 4,000`);
});
