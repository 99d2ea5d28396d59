import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Insertion, PrefixIndex } from "#core/prefix/prefix-index.ts";
import { EMPTY_CHAIN, type BlockChain } from "#core/prompt/block-chain.ts";
import { randomFor } from "#core/base/random.ts";
import { chainOf } from "./random-chains.ts";

const COLLISIONS_SEED = 66;

/** What every prefix index does, whatever it learns from. */
export function prefixIndexContract(name: string, make: () => PrefixIndex): void {
  describe(`${name} as a PrefixIndex`, () => {
    const trunk = chain(1, 2, 3, 4, 5, 6);
    const branch = chain(1, 2, 3, 9, 9);

    it("gives the lowest free slot, also after somebody left", () => {
      const index = make();
      assert.deepEqual(
        [0, 1, 2].map((i) => index.join(`endpoint-${i}`, 10)),
        [0, 1, 2],
      );
      index.leave(1);
      index.leave(0);
      assert.deepEqual(
        [3, 4, 5].map((i) => index.join(`endpoint-${i}`, 10)),
        [0, 1, 3],
      );
    });

    it("matches leading blocks of every endpoint in one lookup", () => {
      const index = make();
      for (let i = 0; i < 40; i++) index.join(`endpoint-${i}`, 10);
      index.insert(3, trunk);
      index.insert(39, branch);
      index.insert(7, chain(2, 3, 4));
      assert.deepEqual(nonZero(hitsOf(index, trunk, 40)), { 3: 6, 39: 3 });
      assert.deepEqual(nonZero(hitsOf(index, chain(1, 2, 3, 9, 9, 9), 40)), { 3: 3, 39: 5 });
      assert.deepEqual(nonZero(hitsOf(index, chain(1, 2), 40)), { 3: 2, 39: 2 });
      assert.deepEqual(nonZero(hitsOf(index, EMPTY_CHAIN, 40)), {});
    });

    it("overwrites what was in hits", () => {
      const index = make();
      index.join("endpoint", 10);
      const hits = new Int32Array(4).fill(99);
      index.match(trunk, hits);
      assert.deepEqual([...hits], [0, 0, 0, 0]);
    });

    it("does not keep the caller's hashes", () => {
      const index = make();
      index.join("endpoint", 10);
      const own = { ...trunk, hashes: trunk.hashes.slice() };
      index.insert(0, own);
      own.hashes.fill(0);
      assert.deepEqual(hitsOf(index, trunk), [6]);
    });

    it("takes an insertion back once, but not what others touched since", () => {
      const index = make();
      index.join("endpoint", 20);
      const first = index.insert(0, trunk);
      const second = index.insert(0, branch);
      index.withdraw(first);
      assert.deepEqual([hitsOf(index, trunk), hitsOf(index, branch)], [[3], [5]]);
      index.withdraw(second);
      index.withdraw(second);
      const left = hitsOf(index, trunk);
      assert.ok(left[0]! <= 3);
      assert.deepEqual(hitsOf(index, branch), left);
    });

    it("ignores withdrawals from an endpoint that cleared or left", () => {
      const index = make();
      index.join("endpoint", 20);
      const cleared = index.insert(0, trunk);
      index.clear(0);
      index.withdraw(cleared);
      assert.deepEqual(hitsOf(index, trunk), [0]);
      const left = index.insert(0, trunk);
      index.leave(0);
      index.withdraw(left);
      assert.equal(index.join("another", 20), 0);
      index.insert(0, trunk);
      index.withdraw(left);
      index.withdraw(cleared);
      assert.deepEqual(hitsOf(index, trunk), [6]);
    });

    it("forgets an endpoint that leaves, and nobody else", () => {
      const index = make();
      index.join("a", 20);
      index.join("b", 20);
      index.insert(0, trunk);
      index.insert(1, branch);
      index.leave(0);
      assert.deepEqual(hitsOf(index, trunk, 2), [0, 3]);
      assert.equal(index.join("c", 20), 0);
      assert.deepEqual(hitsOf(index, trunk, 2), [0, 3]);
    });

    it("keeps the head of a chain that is longer than the room, and nothing without room", () => {
      const index = make();
      index.join("small", 4);
      index.join("none", 0);
      index.insert(0, trunk);
      index.insert(1, trunk);
      assert.deepEqual(hitsOf(index, trunk, 2), [4, 0]);
    });

    it("serves more than a thousand endpoints", () => {
      const index = make();
      for (let i = 0; i < 1_100; i++) index.join(`endpoint-${i}`, 10);
      for (let i = 0; i < 1_100; i++) index.insert(i, i % 2 === 0 ? trunk : branch);
      const hits = hitsOf(index, trunk, 1_100);
      assert.ok(hits.every((held, slot) => held === (slot % 2 === 0 ? 6 : 3)));
    });

    it("distinguishes blocks that share one of their two halves", () => {
      const index = make();
      index.join("endpoint", 20);
      for (const changed of [0, 1]) {
        index.clear(0);
        index.insert(0, trunk);
        for (let block = 0; block < trunk.length; block++) {
          const other = { ...trunk, hashes: trunk.hashes.slice() };
          for (let i = 2 * block + changed; i < other.hashes.length; i += 2) other.hashes[i]! ^= 1;
          assert.deepEqual(hitsOf(index, other), [block], `word ${changed}`);
        }
      }
    });

    it("stays whole when hashes collide", () => {
      const random = randomFor(COLLISIONS_SEED, 1);
      const index = make();
      for (let i = 0; i < 5; i++) index.join(`endpoint-${i}`, 40);
      const insertions: Insertion[] = [];
      for (let i = 0; i < 3_000; i++) {
        const length = random.below(12);
        const hashes = Int32Array.from({ length: 2 * length }, () => random.below(3));
        const colliding = { hashes, length, blockTokens: 16 };
        insertions.push(index.insert(random.below(5), colliding));
        if (random.below(4) === 0) index.withdraw(insertions[random.below(insertions.length)]!);
        for (const held of hitsOf(index, colliding, 5)) assert.ok(held >= 0 && held <= length);
        for (let slot = 0; slot < 5; slot++) assert.ok(index.size(slot) >= 0 && index.size(slot) <= 40);
      }
      for (let slot = 0; slot < 5; slot++) index.clear(slot);
      index.insert(2, trunk);
      assert.deepEqual(hitsOf(index, trunk, 5), [0, 0, 6, 0, 0], `seed ${COLLISIONS_SEED}`);
    });

    it("refuses a slot that nobody has, a second join, and a capacity that is no count", () => {
      const index = make();
      index.join("endpoint", 1);
      assert.throws(() => index.insert(1, trunk), /slot/);
      assert.throws(() => index.leave(1), /slot/);
      assert.throws(() => index.size(5), /slot/);
      assert.throws(() => index.join("endpoint", 1), /once/);
      for (const capacity of [-1, 0.5, Number.NaN]) assert.throws(() => index.resize(0, capacity), /capacity/);
    });
  });
}

/** The chain of a text of these words, one a block. */
export function chain(...words: number[]): BlockChain {
  return chainOf(Int32Array.from(words));
}

/** What each of the first slots holds of the chain. */
export function hitsOf(index: PrefixIndex, wanted: BlockChain, slots = 1): number[] {
  const hits = new Int32Array(slots);
  index.match(wanted, hits);
  return [...hits];
}

function nonZero(hits: number[]): Record<number, number> {
  return Object.fromEntries(hits.flatMap((held, slot) => (held > 0 ? [[slot, held]] : [])));
}
