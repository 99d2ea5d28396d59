import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { randomFor } from "#core/base/random.ts";
import { PRECISE_TIMES } from "#core/prefix/precise.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { chain, prefixIndexContract } from "./prefix-index.contract.ts";

const { graceMicros, silentMicros } = PRECISE_TIMES;

prefixIndexContract("DualIndex without events", () => new DualIndex());

describe("an index of two minds", () => {
  const text = chain(1, 2, 3, 4, 5, 6);
  const other = chain(7, 8, 9);

  it("believes an endpoint's events while they are followed, and else what was sent there", () => {
    const index = new DualIndex();
    for (const endpoint of ["a", "b"]) index.join(endpoint, 100);
    for (const slot of [0, 1]) index.insert(slot, text, true);
    index.followed(0, true);
    assert.deepEqual(hits(index, text), [0, 6], "nothing was reported of a");
    index.stored(0, { at: 1, hashes: text.hashes.slice(0, 4) });
    assert.deepEqual(
      [hits(index, text), hits(index, text, false)],
      [
        [2, 6],
        [6, 6],
      ],
    );
    assert.deepEqual([index.knowledge(0).source, index.knowledge(1).reason], ["precise", "no-events"]);
    index.lost(0, "disconnected");
    assert.deepEqual([hits(index, text), index.knowledge(0).reason], [[6, 6], "disconnected"]);
  });

  it("expects a prompt that is under way until its blocks are reported, and what is overwritten then at once no more", () => {
    const index = followed(true);
    const sent = index.insert(0, text, true);
    assert.deepEqual(hits(index, text), [6]);
    index.computed(sent, 10);
    index.stored(0, { at: 20, hashes: text.hashes });
    index.removed(0, { at: 30, hashes: text.hashes.slice(6) });
    assert.deepEqual(hits(index, text), [3]);
  });

  it("counts a prompt that was computed and never reported, where all is reported: its tokens are not the engine's", () => {
    const index = followed(true);
    index.computed(index.insert(0, text, true), 10);
    index.stored(0, { at: 20, hashes: other.hashes });
    index.advance(10 + graceMicros);
    assert.deepEqual([hits(index, text), index.unreportedPrompts], [[0], 1]);
  });

  it("guesses of an engine that computes and reports nothing, until it reports again", () => {
    const index = followed(true);
    index.stored(0, { at: 0, hashes: other.hashes });
    index.advance(100);
    index.computed(index.insert(0, text, true), 200);
    index.advance(200 + graceMicros);
    assert.equal(index.knowledge(0).source, "precise");
    index.advance(200 + graceMicros + silentMicros);
    assert.deepEqual([index.knowledge(0).reason, hits(index, text)], ["silent", [6]]);
    index.stored(0, { at: 300 + graceMicros + silentMicros, hashes: text.hashes.slice(0, 2) });
    assert.deepEqual([index.knowledge(0).source, hits(index, text)], ["precise", [1]]);
  });

  it("forgets everything after a gap, infers what is computed since, and takes that back with blocks that nobody knows", () => {
    const index = followed(true);
    index.stored(0, { at: 0, hashes: text.hashes });
    index.missed(0);
    assert.deepEqual(hits(index, text), [0]);
    // The engine has it all, so it reports nothing of it.
    index.computed(index.insert(0, text, true), 10);
    index.advance(10 + graceMicros);
    assert.deepEqual(hits(index, text), [6]);
    index.removed(0, { at: 20 + graceMicros, hashes: text.hashes.slice(10) });
    assert.deepEqual(hits(index, text), [5]);
    index.stored(0, { at: 30 + graceMicros, hashes: text.hashes.slice(0, 4) });
    index.removed(0, { at: 40 + graceMicros, hashes: new Int32Array(0), unknownBlocks: 1 });
    assert.deepEqual(hits(index, text), [2], "what was reported stays");
    assert.equal(index.strayRemovals, 0);
  });

  it("infers only blocks that were not reported, so that one removal takes those that were", () => {
    const index = followed(true);
    index.missed(0);
    index.stored(0, { at: 5, hashes: text.hashes.slice(0, 4) });
    index.computed(index.insert(0, text, true), 10);
    index.advance(10 + graceMicros);
    assert.deepEqual([hits(index, text), index.size(0)], [[6], 6]);
    index.removed(0, { at: 20 + graceMicros, hashes: text.hashes.slice(2, 4) });
    assert.deepEqual([hits(index, text), index.size(0)], [[1], 5]);
    index.removed(0, { at: 30 + graceMicros, hashes: text.hashes.slice(0, 2) });
    assert.deepEqual([hits(index, text), index.size(0)], [[0], 4]);
  });

  it("guesses of an engine that had content before, until that is replaced or gone", () => {
    const index = followed(false, 6);
    index.insert(0, other, true);
    assert.deepEqual([index.knowledge(0).reason, hits(index, other)], ["late", [3]]);
    index.stored(0, { at: 10, hashes: text.hashes });
    assert.deepEqual([index.knowledge(0).source, hits(index, text)], ["precise", [6]]);
    const emptied = followed(false, 6);
    emptied.emptied(0, 10);
    assert.equal(emptied.knowledge(0).source, "precise");
  });

  it("empties a cache in the order of its events: what is under way comes after it; a new engine has nothing", () => {
    const index = followed(true);
    index.stored(0, { at: 0, hashes: other.hashes });
    index.insert(0, text, true);
    index.emptied(0, 10);
    assert.deepEqual([hits(index, other), hits(index, text)], [[0], [6]]);
    index.clear(0);
    assert.deepEqual(hits(index, text), [0]);
  });

  it("forgets prompts whose attempts failed, and keeps no speculation for an endpoint that left", () => {
    const index = followed(true);
    const first = index.insert(0, text, true);
    const second = index.insert(0, text, true);
    index.withdraw(first);
    assert.deepEqual(hits(index, text), [6]);
    index.withdraw(second);
    assert.deepEqual(hits(index, text), [0]);
    const left = index.insert(0, text, true);
    index.leave(0);
    index.join("b", 100);
    index.computed(left, 10);
    index.withdraw(left);
    assert.deepEqual(hits(index, text), [0]);
  });
});

function followed(isComplete: boolean, capacityBlocks = 100): DualIndex {
  const index = new DualIndex();
  index.join("endpoint", capacityBlocks);
  index.followed(0, isComplete);
  return index;
}

function hits(index: DualIndex, of: BlockChain, isReported = true): number[] {
  const found = new Int32Array(index.endpoints);
  index.match(of, found, isReported);
  return [...found];
}

describe("blocks in the memory of engines' hosts", () => {
  const text = chain(1, 2, 3, 4, 5, 6);

  it("count where they follow the blocks on the device, with gaps before and behind", () => {
    const index = new DualIndex();
    for (const endpoint of ["a", "b", "c", "d"]) {
      const slot = index.join(endpoint, 100);
      index.followed(slot, true);
    }
    // a: two on the device, the next two in the host's memory. b: nothing to follow. c: a gap. d: all but the first.
    index.stored(0, { at: 1, hashes: text.hashes.slice(0, 4) });
    assert.equal(index.holdsHostBlocks, false, "nothing is there that a decision would have to look up");
    index.stored(0, { at: 1, hashes: text.hashes.slice(4, 8), medium: "host" });
    assert.equal(index.holdsHostBlocks, true);
    index.stored(1, { at: 1, hashes: text.hashes.slice(0, 2), medium: "host" });
    index.stored(1, { at: 1, hashes: text.hashes.slice(4, 8), medium: "host" });
    index.stored(2, { at: 1, hashes: text.hashes.slice(0, 4) });
    index.stored(2, { at: 1, hashes: text.hashes.slice(6, 12), medium: "host" });
    index.stored(3, { at: 1, hashes: text.hashes.slice(0, 2) });
    index.stored(3, { at: 1, hashes: text.hashes.slice(2, 12), medium: "host" });
    assert.deepEqual(held(index, text), [4, 1, 2, 6]);
    index.removed(3, { at: 1, hashes: text.hashes.slice(8, 10), medium: "host" });
    assert.deepEqual(held(index, text), [4, 1, 2, 4]);
    index.removed(0, { at: 2, hashes: text.hashes.slice(2, 4) });
    assert.deepEqual(held(index, text), [1, 1, 2, 4], "the host's blocks do not follow the device's any more");
  });

  it("are forgotten with the events that named them, and are as chains say that are looked up block by block", () => {
    const random = randomFor(5, 1);
    for (let round = 0; round < 200; round++) {
      const index = new DualIndex();
      const onDevice: number[][] = [];
      const inHost: Set<number>[] = [];
      for (let slot = 0; slot < 4; slot++) {
        index.join(String(slot), 100);
        index.followed(slot, true);
        onDevice.push(text.hashes.length === 0 ? [] : Array.from({ length: random.below(5) }, (_, i) => i));
        inHost.push(new Set());
        index.stored(slot, { at: 1, hashes: text.hashes.slice(0, 2 * onDevice[slot]!.length) });
        for (let block = 0; block < text.length; block++) {
          if (random.below(2) === 0) continue;
          inHost[slot]!.add(block);
          index.stored(slot, { at: 1, hashes: text.hashes.slice(2 * block, 2 * block + 2), medium: "host" });
        }
      }
      const expected = inHost.map((blocks, slot) => {
        let depth = onDevice[slot]!.length;
        while (blocks.has(depth)) depth++;
        return depth;
      });
      assert.deepEqual(held(index, text), expected);
      index.missed(0);
      index.emptied(1, 2);
      index.lost(2, "disconnected");
      index.clear(3);
      assert.deepEqual(
        [0, 1, 2, 3].map((slot) => index.hostSize(slot)),
        [0, 0, 0, 0],
      );
    }
  });
});

function held(index: DualIndex, text: BlockChain): number[] {
  const before = new Int32Array(index.endpoints);
  index.match(text, before, true);
  const after = new Int32Array(index.endpoints);
  index.matchHost(text, before, after);
  return [...after];
}
