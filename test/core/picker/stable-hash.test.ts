import assert from "node:assert/strict";
import { test } from "node:test";
import { maxScore } from "#core/picker/max-score.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { randomFor } from "#core/base/random.ts";
import { chain, request, snapshot } from "../state.ts";

const IDS = ["a", "b", "c", "d", "e"];
/** Blocks that name a prompt. */
const NAMING = 4;
const PROMPTS = 300;

const picker = maxScore.create("max-score", { tieBreak: "stable-hash", epsilon: 0 });

/** Where a prompt goes among equals. */
function goesTo(one: RouteRequest, ids: readonly string[] = IDS): string {
  const candidates = ids.map((id) => snapshot({ id }));
  return ids[picker.pick(one, candidates, new Float64Array(ids.length), randomFor(1, 1))]!;
}

/** A prompt of the family's first blocks, and then others. */
function prompt(family: number, length: number, shared = length): RouteRequest {
  const blocks = chain(family, length);
  const hashes = blocks.hashes.slice();
  hashes.set(chain(family + 100_000, length).hashes.subarray(2 * shared), 2 * shared);
  return request({ id: "r", blocks: { ...blocks, hashes } });
}

test("prompts that begin alike go to the same endpoint, however long they are and whatever follows", () => {
  for (let family = 0; family < PROMPTS; family++) {
    const home = goesTo(prompt(family, NAMING));
    assert.equal(goesTo(prompt(family, NAMING + 1)), home);
    assert.equal(goesTo(prompt(family, NAMING + 5, NAMING)), home);
  }
});

test("prompts that differ in their beginning are spread over all endpoints", () => {
  const counts = new Map(IDS.map((id) => [id, 0]));
  for (let family = 0; family < PROMPTS; family++) {
    const home = goesTo(prompt(family, NAMING));
    counts.set(home, counts.get(home)! + 1);
  }
  const fair = PROMPTS / IDS.length;
  for (const [id, count] of counts) assert.ok(count > fair / 2 && count < 2 * fair, `${id} got ${count}`);
});

test("each word of the hash of the last naming block counts, and so does the length of a prompt below a block", () => {
  const moved = (change: (hashes: Int32Array, i: number) => void): number =>
    Array.from({ length: PROMPTS }, (_, i) => {
      const blocks = chain(1, NAMING);
      const hashes = blocks.hashes.slice();
      change(hashes, i);
      return goesTo(request({ id: "r", blocks: { ...blocks, hashes } }));
    }).filter((id) => id !== goesTo(prompt(1, NAMING))).length;
  assert.ok(moved((hashes, i) => (hashes[2 * NAMING - 2]! ^= i)) > PROMPTS / 2);
  assert.ok(moved((hashes, i) => (hashes[2 * NAMING - 1]! ^= i)) > PROMPTS / 2);
  const short = (promptTokens: number) => goesTo(request({ id: "r", blocks: chain(1, 0), promptTokens }));
  assert.equal(new Set(Array.from({ length: 100 }, (_, i) => short(i))).size, IDS.length);
});

test("where an endpoint leaves, only its own prompts move", () => {
  for (let family = 0; family < PROMPTS; family++) {
    const home = goesTo(prompt(family, 6));
    for (const gone of IDS) {
      const left = goesTo(
        prompt(family, 6),
        IDS.filter((id) => id !== gone),
      );
      if (gone === home) assert.notEqual(left, home);
      else assert.equal(left, home);
    }
  }
});
