import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { type ChainState, ChainExtender, rootState } from "#live/tokenizer/text/chain-state.ts";

const BLOCK_WORDS = 4;

function hashesOf(state: ChainState): number[] {
  return [...state.hashes.words.subarray(0, 2 * state.blocks)];
}

function wordsOf(length: number, from: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => from + i);
}

test("whatever follows what, a state has the hashes of its own words, and those before it keep theirs", () => {
  const extender = new ChainExtender(blake3Hasher(BLOCK_WORDS));
  const step = fc.record({ behind: fc.nat(40), words: fc.nat(60) });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const root = rootState(new Int32Array(8));
      const states: { state: ChainState; all: number[] }[] = [{ state: root, all: [] }];
      for (const [i, { behind, words }] of steps.entries()) {
        const before = states[behind % states.length]!;
        const own = wordsOf(words, 1_000 * i);
        const state = extender.extend(before.state, own, 0, own.length);
        states.push({ state, all: [...before.all, ...own] });
      }
      for (const { state, all } of states) {
        const words = Int32Array.from(all);
        const whole = extender.finish(root, words, new Int32Array(0));
        assert.deepEqual(hashesOf(state), [...whole.hashes]);
      }
    }),
  );
});

test("a conversation has one array of hashes, with a quarter to spare, and not one for each time that it outgrew it", () => {
  const extender = new ChainExtender(blake3Hasher(BLOCK_WORDS));
  const states = [rootState(new Int32Array(8))];
  for (let turn = 0; turn < 200; turn++) {
    states.push(extender.extend(states.at(-1)!, wordsOf(50, turn), 0, 50));
  }
  const arrays = new Set(states.slice(1).map(({ hashes }) => hashes.words));
  const bytes = [...arrays].reduce((sum, { byteLength }) => sum + byteLength, 0);
  const filled = 8 * states.at(-1)!.blocks;
  assert.ok(bytes <= 1.25 * filled + 8, `${bytes} bytes in ${arrays.size} arrays for ${filled}`);
});
