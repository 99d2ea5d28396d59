import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PRECISE_TIMES, SPECULATIONS_MAX } from "#core/prefix/precise.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { randomFor, type Random } from "#core/base/random.ts";
import { keyOf, NaiveLru } from "./naive-lru.ts";
import { ReportedEndpoints } from "./reported-endpoints.ts";
import { chain, hitsOf, prefixIndexContract } from "./prefix-index.contract.ts";
import { chainOf, RandomChains } from "./random-chains.ts";

const SEED = 40_409;
const SPECULATION_MICROS = 1_000;
const TIMES = { ...PRECISE_TIMES, speculationMicros: SPECULATION_MICROS };

interface Workload {
  readonly rounds: number;
  readonly operations: number;
  readonly endpoints: number;
  readonly lengthMax: number;
  /** Blocks that an endpoint has room for: never reached. */
  readonly capacity: number;
  /** Share of events that name blocks in no order, as an engine never does. */
  readonly disorder: number;
}

const WORKLOADS: Record<string, Workload> = {
  "engines that free tails first": {
    rounds: 8,
    operations: 300,
    endpoints: 4,
    lengthMax: 20,
    capacity: 20_000,
    disorder: 0,
  },
  "events in any order": { rounds: 16, operations: 200, endpoints: 4, lengthMax: 12, capacity: 20_000, disorder: 0.5 },
  "many endpoints": { rounds: 1, operations: 200, endpoints: 60, lengthMax: 10, capacity: 20_000, disorder: 0.1 },
  "runs longer than a run may be": {
    rounds: 2,
    operations: 40,
    endpoints: 2,
    lengthMax: 9_000,
    capacity: 500_000,
    disorder: 0.02,
  },
};

prefixIndexContract("DualIndex of endpoints that report", () => new ReportedEndpoints(PRECISE_TIMES));

describe("what engines report", () => {
  const text = chain(1, 2, 3, 4, 5, 6);

  it("keeps a block until each of its copies is removed", () => {
    const index = confirmedOnly();
    index.stored(0, { at: 0, hashes: text.hashes });
    index.stored(0, { at: 0, hashes: hashesOf(text, 4, 6) });
    index.removed(0, { at: 0, hashes: hashesOf(text, 4, 6) });
    assert.deepEqual([hitsOf(index, text), index.size(0)], [[6], 6]);
    index.removed(0, { at: 0, hashes: hashesOf(text, 5, 6) });
    assert.deepEqual([hitsOf(index, text), index.size(0)], [[5], 5]);
    assert.equal(index.strayRemovals, 0);
  });

  it("ends a match at a gap, and goes on when the gap is filled", () => {
    const index = confirmedOnly();
    index.stored(0, { at: 0, hashes: text.hashes });
    index.removed(0, { at: 0, hashes: hashesOf(text, 2, 3) });
    assert.deepEqual([hitsOf(index, text), index.size(0)], [[2], 5]);
    index.stored(0, { at: 0, hashes: hashesOf(text, 2, 3) });
    assert.deepEqual([hitsOf(index, text), index.size(0)], [[6], 6]);
  });

  it("matches blocks that were reported tail first", () => {
    const index = confirmedOnly();
    for (let block = 5; block >= 0; block--) index.stored(0, { at: 0, hashes: hashesOf(text, block, block + 1) });
    assert.deepEqual(hitsOf(index, text), [6]);
  });

  it("counts removals of what was never stored", () => {
    const index = confirmedOnly();
    index.stored(0, { at: 0, hashes: hashesOf(text, 0, 2) });
    index.removed(0, { at: 0, hashes: text.hashes });
    assert.deepEqual([index.strayRemovals, index.size(0)], [4, 0]);
  });

  it("refuses blocks of an endpoint that reports four times its room", () => {
    const index = confirmedOnly(2);
    for (let i = 0; i < 3; i++) index.stored(0, { at: 0, hashes: text.hashes });
    assert.deepEqual([index.refusedBlocks, index.size(0)], [18 - 8, 6]);
  });

  it("speculates until the time is over, or as long as the engine confirms", () => {
    const index = new ReportedEndpoints(TIMES);
    index.join("a", 100);
    index.join("b", 100);
    index.advance(10);
    index.insert(0, text);
    index.insert(1, text);
    index.stored(1, { at: 500, hashes: hashesOf(text, 0, 4) });
    index.advance(10 + SPECULATION_MICROS - 1);
    assert.deepEqual(hitsOf(index, text, 2), [6, 6]);
    index.advance(10 + SPECULATION_MICROS);
    assert.deepEqual(hitsOf(index, text, 2), [0, 4]);
  });

  it("expects no more prompts at once than SPECULATIONS_MAX, and none longer than SPECULATION_MICROS", () => {
    const index = new ReportedEndpoints(TIMES);
    index.join("a", 100);
    for (let i = 0; i < SPECULATIONS_MAX + 3; i++) index.insert(0, text);
    assert.equal(index.endedEarly, 3);
    assert.deepEqual(hitsOf(index, text), [6]);
    index.advance(SPECULATION_MICROS);
    assert.deepEqual(hitsOf(index, text), [0]);
  });

  it("joins runs that were reported block by block once a chain shows their order", () => {
    const index = confirmedOnly();
    for (let block = 0; block < text.length; block++)
      index.stored(0, { at: 0, hashes: hashesOf(text, block, block + 1) });
    const before = index.runs;
    index.insert(0, text);
    assert.deepEqual([before, index.runs, ...hitsOf(index, text)], [6, 1, 6]);
    index.removed(0, { at: 0, hashes: text.hashes });
    assert.deepEqual([index.runs, index.strayRemovals], [0, 0]);
  });

  it("joins runs only up to the length that a run may have", () => {
    const long = chainOf(Int32Array.from({ length: 5_000 }, (_, i) => i));
    const index = confirmedOnly(5_000);
    for (let block = 0; block < long.length; block += 100)
      index.stored(0, { at: 0, hashes: hashesOf(long, block, block + 100) });
    index.insert(0, long);
    assert.deepEqual([index.runs, ...hitsOf(index, long)], [2, 5_000]);
  });

  describe("a run whose order a chain has shown, and that was then continued in another", () => {
    // What is new stands between two blocks of the chain; endpoint 1 holds it, but not the second of them.
    const foreign = chain(9);
    const reported = (...parts: readonly Int32Array[]) => Int32Array.from(parts.flatMap((part) => [...part]));
    const blocks = (from: number, to: number) => hashesOf(text, from, to);

    it("ends where it was cut", () => {
      const index = twoEndpoints();
      index.stored(0, { at: 0, hashes: blocks(0, 3) });
      assert.deepEqual(hitsOf(index, text, 2), [3, 0]);
      index.removed(0, { at: 0, hashes: reported(blocks(2, 3), blocks(1, 2)) });
      index.stored(0, { at: 0, hashes: reported(blocks(0, 1), foreign.hashes, blocks(2, 3)) });
      index.stored(1, { at: 0, hashes: reported(blocks(0, 1), foreign.hashes) });
      assert.deepEqual(hitsOf(index, text, 2), [1, 1]);
    });

    it("ends where its head was cut off", () => {
      const index = twoEndpoints();
      index.stored(0, { at: 0, hashes: blocks(0, 4) });
      assert.deepEqual(hitsOf(index, text, 2), [4, 0]);
      index.removed(0, { at: 0, hashes: blocks(1, 2) });
      index.stored(0, { at: 0, hashes: reported(blocks(3, 4), foreign.hashes, blocks(5, 6)) });
      index.stored(1, { at: 0, hashes: reported(blocks(0, 4), foreign.hashes) });
      assert.deepEqual(hitsOf(index, text, 2), [1, 4]);
    });

    it("is not what a run had before that was joined to another", () => {
      const index = twoEndpoints();
      index.stored(0, { at: 0, hashes: blocks(0, 2) });
      index.stored(0, { at: 0, hashes: blocks(2, 6) });
      index.insert(0, text);
      index.advance(SPECULATION_MICROS);
      assert.deepEqual([index.runs, ...hitsOf(index, text, 2)], [1, 6, 0]);
      const other = chain(7, 8, 9);
      index.stored(0, { at: 0, hashes: reported(hashesOf(other, 0, 1), foreign.hashes, hashesOf(other, 2, 3)) });
      index.stored(1, { at: 0, hashes: reported(hashesOf(other, 0, 1), foreign.hashes) });
      assert.deepEqual(hitsOf(index, other, 2), [1, 1]);
    });
  });

  for (const [name, workload] of Object.entries(WORKLOADS)) {
    it(`equals sets of counted blocks: ${name}`, () => {
      for (let round = 0; round < workload.rounds; round++) {
        new Comparison(workload, randomFor(SEED, round), `seed ${SEED}, round ${round}`).run();
      }
    });
  }

  function confirmedOnly(capacity = 100): ReportedEndpoints {
    const index = new ReportedEndpoints(TIMES);
    index.join("endpoint", capacity);
    return index;
  }
});

function twoEndpoints(): ReportedEndpoints {
  const index = new ReportedEndpoints(TIMES);
  index.join("a", 100);
  index.join("b", 100);
  return index;
}

/** Drives the index beside one map of counts and one naive LRU of speculations. */
class Comparison {
  readonly #workload: Workload;
  readonly #random: Random;
  readonly #where: string;
  readonly #chains: RandomChains;
  readonly #index = new ReportedEndpoints(TIMES);
  readonly #speculated = new NaiveLru();
  readonly #counts: Map<string, number>[] = [];
  readonly #inserted: { readonly slot: number; readonly stamp: number; readonly at: number }[] = [];
  readonly #hits = new Int32Array(128);
  #known: BlockChain[] = [];
  #now = 0;

  constructor(workload: Workload, random: Random, where: string) {
    this.#workload = workload;
    this.#random = random;
    this.#where = where;
    this.#chains = new RandomChains(random, workload.lengthMax);
  }

  run(): void {
    for (let i = 0; i < this.#workload.endpoints; i++) {
      this.#index.join(`endpoint-${i}`, this.#workload.capacity);
      this.#speculated.join(this.#workload.capacity);
      this.#counts.push(new Map());
    }
    for (let operation = 0; operation < this.#workload.operations; operation++) {
      const what = this.#operate();
      this.#compare(`${this.#where}, operation ${operation}: ${what}`);
    }
    for (let slot = 0; slot < this.#workload.endpoints; slot++) this.#index.leave(slot);
    assert.equal(this.#index.runs, 0, this.#where);
  }

  #operate(): string {
    const random = this.#random;
    const slot = random.below(this.#workload.endpoints);
    const dice = random.next();
    this.#now += random.below(SPECULATION_MICROS / 4);
    this.#end();
    this.#index.advance(this.#now);
    if (dice < 0.02) {
      this.#index.clear(slot);
      this.#speculated.clear(slot);
      this.#counts[slot]!.clear();
      return `clear ${slot}`;
    }
    const chain = this.#chain();
    if (dice < 0.3) {
      this.#index.insert(slot, chain);
      this.#inserted.push({ slot, stamp: this.#speculated.insert(slot, chain), at: this.#now });
      return `insert ${chain.length} blocks for ${slot}`;
    }
    const from = random.below(chain.length + 1);
    const to = from + random.below(chain.length - from + 1);
    const hashes = random.next() < this.#workload.disorder ? shuffled(random, hashesOf(chain, from, to)) : undefined;
    return dice < 0.7
      ? this.#store(slot, hashes ?? hashesOf(chain, from, to))
      : this.#remove(slot, hashes ?? tailFirst(chain, from));
  }

  /** Usually one that was used before, so that removals find something. */
  #chain(): BlockChain {
    const known = this.#known[this.#random.below(20)];
    if (known !== undefined && this.#random.next() < 0.7) return known;
    const chain = this.#chains.next();
    this.#known = [chain, ...this.#known].slice(0, 20);
    return chain;
  }

  #store(slot: number, hashes: Int32Array): string {
    const counts = this.#counts[slot]!;
    this.#index.stored(slot, { at: this.#now, hashes });
    for (const key of keysOf(hashes)) counts.set(key, (counts.get(key) ?? 0) + 1);
    return `store ${hashes.length / 2} blocks in ${slot}`;
  }

  #remove(slot: number, hashes: Int32Array): string {
    const counts = this.#counts[slot]!;
    this.#index.removed(slot, { at: this.#now, hashes });
    for (const key of keysOf(hashes)) {
      const count = counts.get(key) ?? 0;
      if (count > 1) counts.set(key, count - 1);
      else counts.delete(key);
    }
    return `remove ${hashes.length / 2} blocks from ${slot}`;
  }

  #end(): void {
    while (this.#inserted[0] !== undefined && this.#inserted[0].at + SPECULATION_MICROS <= this.#now) {
      const { slot, stamp } = this.#inserted.shift()!;
      this.#speculated.expire(slot, stamp);
    }
  }

  #compare(where: string): void {
    for (const [slot, counts] of this.#counts.entries()) assert.equal(this.#index.size(slot), counts.size, where);
    for (let i = 0; i < 2; i++) {
      const chain = this.#chain();
      const speculated = this.#speculated.match(chain);
      const expected = this.#counts.map((counts, slot) => {
        let held = 0;
        while (held < chain.length && counts.has(keyOf(chain.hashes, held))) held++;
        return Math.max(held, speculated[slot]!);
      });
      this.#index.match(chain, this.#hits);
      assert.deepEqual([...this.#hits.subarray(0, expected.length)], expected, `${where}: hits`);
    }
  }
}

function hashesOf(chain: BlockChain, from: number, to: number): Int32Array {
  return chain.hashes.slice(2 * from, 2 * to);
}

function tailFirst(chain: BlockChain, from: number): Int32Array {
  const order = Array.from({ length: chain.length - from }, (_, i) => chain.length - 1 - i);
  return Int32Array.from(order.flatMap((block) => [chain.hashes[2 * block]!, chain.hashes[2 * block + 1]!]));
}

function shuffled(random: Random, hashes: Int32Array): Int32Array {
  const mixed = hashes.slice();
  for (let i = mixed.length / 2 - 1; i > 0; i--) {
    const j = random.below(i + 1);
    for (const word of [0, 1]) {
      [mixed[2 * i + word], mixed[2 * j + word]] = [mixed[2 * j + word]!, mixed[2 * i + word]!];
    }
  }
  return mixed;
}

function keysOf(hashes: Int32Array): string[] {
  return Array.from({ length: hashes.length / 2 }, (_, block) => keyOf(hashes, block));
}
