import assert from "node:assert/strict";
import { describe, test } from "node:test";

import fc from "fast-check";

import { EXPECTED_TOKENS_MIN, MISSES_UNTIL_EMPTY, ResetJudge } from "#live/keeper/cache-watch.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import "../../property-seed.ts";

const BLOCK = 16;

/** Turn `turns` of a conversation: a beginning that all share, and blocks of its own. */
function prompt(conversation: number, turns: number, shared: number): BlockChain {
  const length = shared + 10 * turns;
  const hashes = new Int32Array(2 * length);
  for (let i = 0; i < length; i++) {
    hashes[2 * i] = i < shared ? i : 1_000 * conversation + i;
    hashes[2 * i + 1] = i < shared ? -1 : conversation;
  }
  return { hashes, length, blockTokens: BLOCK };
}

/** An engine that caches all that it computes, until somebody resets it, and an index that does not learn of that. */
class Cache {
  readonly #held = new Set<string>();
  readonly #believed = new Set<string>();

  hit(blocks: BlockChain): { hitTokens: number; cachedTokens: number } {
    const keys = Array.from({ length: blocks.length }, (_, i) => `${blocks.hashes[2 * i]},${blocks.hashes[2 * i + 1]}`);
    const leading = (set: ReadonlySet<string>): number => {
      const at = keys.findIndex((key) => !set.has(key));
      return (at < 0 ? keys.length : at) * BLOCK;
    };
    const both = { hitTokens: leading(this.#believed), cachedTokens: leading(this.#held) };
    for (const key of keys) for (const set of [this.#held, this.#believed]) set.add(key);
    return both;
  }

  reset(): void {
    this.#held.clear();
  }

  forgotten(): void {
    this.#believed.clear();
  }
}

const conversations = fc.array(fc.nat(5), { minLength: 20, maxLength: 80 });

/** Asks turn by turn; how many answers after the reset had less than was expected before it was noticed, and false alarms. */
function play(order: readonly number[], resetAt: number, shared: number) {
  const [judge, cache, turns] = [new ResetJudge(), new Cache(), new Map<number, number>()];
  let [missed, noticed, alarms, first] = [0, false, 0, false];
  for (const [i, conversation] of order.entries()) {
    if (i === resetAt) cache.reset();
    const turn = (turns.get(conversation) ?? 0) + 1;
    turns.set(conversation, turn);
    const blocks = prompt(conversation, turn, shared);
    const { hitTokens, cachedTokens } = cache.hit(blocks);
    const recentTokens = judge.sent(blocks);
    if (i === resetAt) first = hitTokens >= EXPECTED_TOKENS_MIN;
    if (i >= resetAt && !noticed && hitTokens - cachedTokens >= EXPECTED_TOKENS_MIN) missed++;
    if (!judge.answered(i + 1, { sentAt: i, blocks, hitTokens, recentTokens }, cachedTokens)) continue;
    if (i < resetAt || noticed) alarms++;
    noticed = true;
    cache.forgotten();
  }
  return { missed, noticed, alarms, first };
}

describe("a cache that was emptied without a word", () => {
  test("is found by the second answer that lacks what was expected, whatever prompts share, and found once", () => {
    fc.assert(
      fc.property(conversations, fc.nat(40), fc.constantFrom(0, 12), (order, resetAt, shared) => {
        const { missed, noticed, alarms, first } = play(order, resetAt, shared);
        assert.equal(alarms, 0);
        // What was sent between the reset and the first answer that shows it may speak against it, once.
        if (!first) return;
        assert.ok(missed <= MISSES_UNTIL_EMPTY, `${missed} answers were expected wrongly`);
        assert.equal(noticed, missed === MISSES_UNTIL_EMPTY);
      }),
    );
  });

  test("is not what loses single chains, while others are still there", () => {
    const judge = new ResetJudge();
    for (let i = 0; i < 50; i++) {
      const blocks = prompt(i, 2, 0);
      const recentTokens = judge.sent(blocks);
      const cachedTokens = i % 2 === 0 ? 0 : 2 * EXPECTED_TOKENS_MIN;
      assert.equal(judge.answered(i + 1, { sentAt: i, blocks, hitTokens: 320, recentTokens }, cachedTokens), false);
    }
  });

  test("is not found again by answers to what was sent before it was found", () => {
    const judge = new ResetJudge();
    const found: number[] = [];
    for (let i = 0; i < 12; i++)
      if (judge.answered(100 + i, { sentAt: i, blocks: prompt(i, 2, 0), hitTokens: 320, recentTokens: undefined }, 0))
        found.push(i);
    assert.deepEqual(found, [1]);
  });

  test("drops a suspicion once too much was sent since", () => {
    const judge = new ResetJudge();
    const first = prompt(1, 2, 0);
    judge.answered(1, { sentAt: 0, blocks: first, hitTokens: 320, recentTokens: undefined }, 0);
    judge.sent(prompt(2, 7_000, 0));
    const other = { sentAt: 2, blocks: prompt(3, 2, 0), hitTokens: 320, recentTokens: 0 };
    assert.equal(judge.answered(3, other, 0), false);
  });
});
