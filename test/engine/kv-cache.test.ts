import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomFor } from "#core/base/random.ts";
import { engineDefaults } from "#engine/config.ts";
import { KvCache } from "#engine/kv-cache.ts";
import { Sequence } from "#engine/sequence.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

const BLOCK_TOKENS = 4;
const BLOCKS = 24;
const FAMILIES = 3;

/** vLLM's block pool told plainly: lists, and contents as strings. */
class PlainPool {
  readonly free: number[] = Array.from({ length: BLOCKS }, (_, block) => block);
  readonly content = new Map<number, string>();
  /** Blocks that hold a content, in the order in which they were written. */
  readonly holders = new Map<string, number[]>();
  readonly references = new Map<number, number>();

  hits(contents: readonly string[], max: number): number[] {
    const hits: number[] = [];
    for (const content of contents.slice(0, max)) {
      const block = this.holders.get(content)?.[0];
      if (block === undefined) break;
      hits.push(block);
    }
    return hits;
  }

  claim(hits: readonly number[]): void {
    for (const block of hits) {
      if (!this.references.get(block)) this.free.splice(this.free.indexOf(block), 1);
      this.references.set(block, (this.references.get(block) ?? 0) + 1);
    }
  }

  take(count: number): number[] {
    return this.free.splice(0, count).map((block) => {
      const old = this.content.get(block);
      if (old !== undefined)
        this.holders.set(
          old,
          (this.holders.get(old) ?? []).filter((holder) => holder !== block),
        );
      this.content.delete(block);
      this.references.set(block, 1);
      return block;
    });
  }

  write(block: number, content: string): void {
    this.content.set(block, content);
    this.holders.set(content, [...(this.holders.get(content) ?? []), block]);
  }

  release(blocks: readonly number[]): void {
    for (const block of blocks.toReversed()) {
      const references = (this.references.get(block) ?? 0) - 1;
      this.references.set(block, references);
      if (references > 0) continue;
      if (this.content.has(block)) this.free.push(block);
      else this.free.unshift(block);
    }
  }
}

interface Pair {
  readonly sequence: Sequence;
  readonly contents: readonly string[];
  readonly blocks: number[];
  tokens: number;
  written: number;
}

test("the block pool agrees with a plain one over random admissions, growth and release", () => {
  for (const seed of drawnSeeds(150)) compare(randomFor(seed, 2), `seed ${seed}`);
});

function compare(random: Random, seed: string): void {
  const cache = new KvCache(engineDefaults({ kvBlocks: BLOCKS + 1, blockTokens: BLOCK_TOKENS }), {
    token: () => undefined,
    finished: () => undefined,
  });
  const plain = new PlainPool();
  const running: Pair[] = [];
  for (let step = 0; step < 120; step++) {
    const action = random.below(3);
    if (action === 0) admit(random, cache, plain, running, seed);
    if (action === 1) for (const pair of running) grow(random, cache, plain, pair);
    if (action === 2 && running.length > 0) {
      const [pair] = running.splice(random.below(running.length), 1) as [Pair];
      cache.release(pair.sequence, 0);
      plain.release(pair.blocks);
    }
    cache.verify(running.map((pair) => pair.sequence));
    assert.equal(cache.free, plain.free.length, seed);
    // Numbers differ, but two sequences share a named block in one exactly if they share it in the other.
    const places = new Map<number, string>();
    for (const { sequence, blocks, written } of running) {
      assert.equal(sequence.blockCount, blocks.length, seed);
      const held = placesOf(cache, sequence);
      assert.equal(held.length, written, seed);
      for (const [i, place] of held.entries()) {
        const block = blocks[i] as number;
        assert.equal(places.get(block) ?? place, place, seed);
        places.set(block, place);
      }
    }
    assert.equal(new Set(places.values()).size, places.size, seed);
  }
}

/** What stands for each block that the sequence holds by name: an extent and the place in it. */
function placesOf(cache: KvCache, sequence: Sequence): string[] {
  const places: string[] = [];
  cache.eachExtent(sequence, (extent, blocks) => {
    for (let place = 0; place < blocks; place++) places.push(`${extent}/${place}`);
  });
  return places;
}

/** Content i is the same in all sequences of a family up to a point that is the sequence's own. */
function admit(random: Random, cache: KvCache, plain: PlainPool, running: Pair[], seed: string): void {
  const family = random.below(FAMILIES);
  const shared = random.below(6);
  const own = random.below(1000);
  const contents = Array.from({ length: 12 }, (_, i) => `${i < shared ? family : `${family}.${shared}.${own}`}/${i}`);
  const hashes = Int32Array.from({ length: 24 }, (_, word) => {
    const i = word >> 1;
    if (word % 2 === 1) return i;
    return i < shared ? family : 1000 * (10 * family + shared + 1) + own;
  });
  const tokens = 1 + random.below(30);
  const sequence = new Sequence();
  sequence.reset(
    { id: "", promptTokens: tokens, outputTokens: 1, hashes, priority: 0, deadlineAt: undefined, cacheRead: true },
    0,
    0,
    0,
    1,
  );
  const hits = plain.hits(contents, Math.floor((tokens - 1) / BLOCK_TOKENS));
  assert.equal(cache.lookup(hashes, Math.floor((tokens - 1) / BLOCK_TOKENS)), hits.length, seed);
  assert.equal(cache.prefixBlocks(hashes, 12), plain.hits(contents, 12).length, seed);
  const lacking = Math.ceil(tokens / BLOCK_TOKENS) - hits.length;
  if (lacking + cache.hitFree > cache.free) return;
  cache.claim(sequence);
  plain.claim(hits);
  const pair: Pair = { sequence, contents, blocks: [...hits], tokens: 0, written: hits.length };
  running.push(pair);
  extend(cache, plain, pair, tokens);
}

function grow(random: Random, cache: KvCache, plain: PlainPool, pair: Pair): void {
  const tokens = Math.min(48, pair.tokens + random.below(6));
  if (cache.lacking(pair.sequence, tokens) <= cache.free) extend(cache, plain, pair, tokens);
}

function extend(cache: KvCache, plain: PlainPool, pair: Pair, tokens: number): void {
  const lacking = cache.lacking(pair.sequence, tokens);
  cache.take(pair.sequence, lacking, 0);
  cache.store(pair.sequence, tokens, 0);
  pair.blocks.push(...plain.take(lacking));
  pair.tokens = tokens;
  for (; pair.written < Math.floor(tokens / BLOCK_TOKENS); pair.written++) {
    plain.write(pair.blocks[pair.written] as number, pair.contents[pair.written] as string);
  }
}
