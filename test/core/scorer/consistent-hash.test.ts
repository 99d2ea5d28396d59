import assert from "node:assert/strict";
import { test } from "node:test";
import type { RouteRequest } from "#core/request/request.ts";
import { consistentHash } from "#core/scorer/consistent-hash.ts";
import { ABSTAIN } from "#core/scorer/scorer.ts";
import { chain, request, snapshot } from "../state.ts";

const IDS = ["a", "b", "c", "d", "e"];
/** Blocks that name a prefix, of 16 tokens. */
const NAMING = 4;
const PROMPTS = 300;

type Key = "session" | "tenant" | "prefix";

function scoresOf(one: RouteRequest, key: Key, scores: "rank" | "winner" = "rank", ids = IDS): number[] {
  const scorer = consistentHash.create("consistent-hash", { key, prefixTokens: NAMING * 16, scores });
  const out = new Float64Array(ids.length);
  scorer.score(
    one,
    ids.map((id) => snapshot({ id })),
    out,
  );
  return [...out];
}

function prompt(family: number, length: number): RouteRequest {
  return request({ id: "r", blocks: chain(family, length) });
}

const first = (scores: readonly number[]): string => IDS[scores.indexOf(Math.max(...scores))]!;

test("prompts that begin alike rank the endpoints alike, whatever follows, and others rank them otherwise", () => {
  const counts = new Map(IDS.map((id) => [id, 0]));
  for (let family = 0; family < PROMPTS; family++) {
    const scores = scoresOf(prompt(family, NAMING), "prefix");
    assert.deepEqual(scoresOf(prompt(family, NAMING + 1), "prefix"), scores);
    assert.deepEqual(scoresOf(prompt(family, NAMING + 7), "prefix"), scores);
    assert.notDeepEqual(scoresOf(prompt(family, NAMING - 1), "prefix"), scores);
    counts.set(first(scores), counts.get(first(scores))! + 1);
  }
  const fair = PROMPTS / IDS.length;
  for (const [id, count] of counts) assert.ok(count > fair / 2 && count < 2 * fair, `${id} got ${count}`);
});

test("each word of the hash of the last naming block counts", () => {
  const whole = scoresOf(prompt(1, NAMING), "prefix");
  for (const word of [2 * NAMING - 2, 2 * NAMING - 1]) {
    const blocks = chain(1, NAMING);
    const hashes = blocks.hashes.slice();
    hashes[word]! ^= 1;
    assert.notDeepEqual(scoresOf(request({ id: "r", blocks: { ...blocks, hashes } }), "prefix"), whole);
  }
});

test("a session or a tenant keeps its rank of the endpoints when another leaves; without one there is no score", () => {
  for (const key of ["session", "tenant"] as const) {
    for (let i = 0; i < 50; i++) {
      const one = request({ id: "r", [key]: `who-${i}` });
      const all = scoresOf(one, key);
      assert.deepEqual(scoresOf(one, key, "rank", IDS.slice(1)), all.slice(1));
      assert.deepEqual(
        scoresOf(one, key, "winner"),
        all.map((score) => (score === Math.max(...all) ? 1 : 0)),
      );
    }
    assert.ok(scoresOf(request({ id: "r" }), key).every((score) => score === ABSTAIN));
  }
  assert.ok(scoresOf(prompt(1, 0), "prefix").every((score) => score === ABSTAIN));
});
