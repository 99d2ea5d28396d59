import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DualIndex } from "#core/prefix/dual-index.ts";
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
    index.stored(0, text.hashes.slice(0, 4), 1);
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
    index.stored(0, text.hashes, 20);
    index.removed(0, text.hashes.slice(6), 30);
    assert.deepEqual(hits(index, text), [3]);
  });

  it("counts a prompt that was computed and never reported, where all is reported: its tokens are not the engine's", () => {
    const index = followed(true);
    index.computed(index.insert(0, text, true), 10);
    index.stored(0, other.hashes, 20);
    index.advance(10 + graceMicros);
    assert.deepEqual([hits(index, text), index.unreportedPrompts], [[0], 1]);
  });

  it("guesses of an engine that computes and reports nothing, until it reports again", () => {
    const index = followed(true);
    index.stored(0, other.hashes, 0);
    index.advance(100);
    index.computed(index.insert(0, text, true), 200);
    index.advance(200 + graceMicros);
    assert.equal(index.knowledge(0).source, "precise");
    index.advance(200 + graceMicros + silentMicros);
    assert.deepEqual([index.knowledge(0).reason, hits(index, text)], ["silent", [6]]);
    index.stored(0, text.hashes.slice(0, 2), 300 + graceMicros + silentMicros);
    assert.deepEqual([index.knowledge(0).source, hits(index, text)], ["precise", [1]]);
  });

  it("forgets everything after a gap, infers what is computed since, and takes that back with blocks that nobody knows", () => {
    const index = followed(true);
    index.stored(0, text.hashes, 0);
    index.missed(0);
    assert.deepEqual(hits(index, text), [0]);
    // The engine has it all, so it reports nothing of it.
    index.computed(index.insert(0, text, true), 10);
    index.advance(10 + graceMicros);
    assert.deepEqual(hits(index, text), [6]);
    index.removed(0, text.hashes.slice(10), 20 + graceMicros);
    assert.deepEqual(hits(index, text), [5]);
    index.stored(0, text.hashes.slice(0, 4), 30 + graceMicros);
    index.removed(0, new Int32Array(0), 40 + graceMicros, 1);
    assert.deepEqual(hits(index, text), [2], "what was reported stays");
    assert.equal(index.strayRemovals, 0);
  });

  it("guesses of an engine that had content before, until that is replaced or gone", () => {
    const index = followed(false, 6);
    index.insert(0, other, true);
    assert.deepEqual([index.knowledge(0).reason, hits(index, other)], ["late", [3]]);
    index.stored(0, text.hashes, 10);
    assert.deepEqual([index.knowledge(0).source, hits(index, text)], ["precise", [6]]);
    const emptied = followed(false, 6);
    emptied.emptied(0, 10);
    assert.equal(emptied.knowledge(0).source, "precise");
  });

  it("empties a cache in the order of its events: what is under way comes after it; a new engine has nothing", () => {
    const index = followed(true);
    index.stored(0, other.hashes, 0);
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
