import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { Insertion } from "#core/prefix/prefix-index.ts";
import { randomFor, type Random } from "#core/base/random.ts";
import { NaiveLru } from "./naive-lru.ts";
import { prefixIndexContract } from "./prefix-index.contract.ts";
import { chainOf, RandomChains } from "./random-chains.ts";

const SEED = 7_501;

interface Workload {
  readonly rounds: number;
  readonly operations: number;
  readonly endpointsMax: number;
  readonly lengthMax: number;
  readonly capacityMax: number;
}

const WORKLOADS: Record<string, Workload> = {
  "few endpoints, room for a chain or two": {
    rounds: 60,
    operations: 250,
    endpointsMax: 3,
    lengthMax: 12,
    capacityMax: 20,
  },
  "no room, or room for one": { rounds: 20, operations: 150, endpointsMax: 4, lengthMax: 5, capacityMax: 1 },
  "room for many chains": { rounds: 20, operations: 300, endpointsMax: 5, lengthMax: 30, capacityMax: 400 },
  "many endpoints": { rounds: 2, operations: 700, endpointsMax: 200, lengthMax: 20, capacityMax: 60 },
  "runs longer than a segment may be": {
    rounds: 2,
    operations: 60,
    endpointsMax: 2,
    lengthMax: 9_000,
    capacityMax: 12_000,
  },
};

prefixIndexContract("ApproximateIndex", () => new ApproximateIndex());

describe("ApproximateIndex", () => {
  for (const [name, workload] of Object.entries(WORKLOADS)) {
    it(`equals a naive strict LRU: ${name}`, () => {
      for (let round = 0; round < workload.rounds; round++) {
        new Comparison(workload, randomFor(SEED, round), `seed ${SEED}, round ${round}`).run();
      }
    });
  }

  it("needs no more memory after ten times its room went through", () => {
    const random = randomFor(SEED, 1);
    const chains = new RandomChains(random, 200);
    const index = new ApproximateIndex();
    for (let i = 0; i < 4; i++) index.join(`endpoint-${i}`, 3_000);
    const churn = (blocks: number) => {
      for (let done = 0; done < blocks;) {
        const chain = chains.next();
        index.insert(random.below(4), chain);
        done += chain.length;
      }
    };
    churn(120_000);
    const before = index.bytes;
    churn(120_000);
    assert.ok(index.bytes <= 1.1 * before, `${before} bytes, then ${index.bytes}`);
    const held = [0, 1, 2, 3].reduce((sum, slot) => sum + index.size(slot), 0);
    assert.equal(held, 12_000);
    for (let slot = 0; slot < 4; slot++) index.leave(slot);
    assert.ok(index.bytes < before / 2, "runs are given back when the last endpoint leaves");
  });

  it("uses the memory of evicted tails again", () => {
    const index = new ApproximateIndex();
    const fill = (from: number) => {
      for (let i = from; i < from + 40; i++) {
        const text = Int32Array.from({ length: 4_000 }, (_, word) => i + word);
        index.insert(index.join(`endpoint-${i}`, 4_000), chainOf(text));
      }
    };
    fill(0);
    const before = index.bytes;
    for (let slot = 0; slot < 40; slot++) index.resize(slot, 4);
    fill(40);
    assert.ok(index.bytes <= 1.1 * before, `${before} bytes, then ${index.bytes}`);
  });
});

/** Drives the index and its definition side by side. */
class Comparison {
  readonly #workload: Workload;
  readonly #random: Random;
  readonly #where: string;
  readonly #chains: RandomChains;
  readonly #index = new ApproximateIndex();
  readonly #naive = new NaiveLru();
  readonly #slots: number[] = [];
  readonly #insertions: { readonly insertion: Insertion; readonly slot: number; readonly stamp: number }[] = [];
  readonly #hits = new Int32Array(256);
  #joined = 0;

  constructor(workload: Workload, random: Random, where: string) {
    this.#workload = workload;
    this.#random = random;
    this.#where = where;
    this.#chains = new RandomChains(random, workload.lengthMax);
  }

  run(): void {
    const start = Math.ceil(this.#workload.endpointsMax / 2);
    for (let i = 0; i < start; i++) this.#join();
    for (let operation = 0; operation < this.#workload.operations; operation++) {
      const what = this.#operate();
      this.#compare(`${this.#where}, operation ${operation}: ${what}`);
    }
    for (const slot of this.#slots) this.#index.leave(slot);
    assert.equal(this.#index.segments, 0, this.#where);
    assert.equal(this.#index.holdings, 0, this.#where);
  }

  #operate(): string {
    const random = this.#random;
    const slot = this.#slots[random.below(this.#slots.length)];
    const dice = random.next();
    if (slot === undefined || (dice < 0.03 && this.#slots.length < this.#workload.endpointsMax)) return this.#join();
    if (dice < 0.05) {
      this.#slots.splice(this.#slots.indexOf(slot), 1);
      this.#index.leave(slot);
      this.#naive.leave(slot);
      return `leave ${slot}`;
    }
    if (dice < 0.07) {
      this.#index.clear(slot);
      this.#naive.clear(slot);
      return `clear ${slot}`;
    }
    if (dice < 0.12) {
      const capacity = random.below(this.#workload.capacityMax + 1);
      this.#index.resize(slot, capacity);
      this.#naive.resize(slot, capacity);
      return `resize ${slot} to ${capacity}`;
    }
    if (dice < 0.25) return this.#withdraw();
    const chain = this.#chains.next();
    const insertion = this.#index.insert(slot, chain);
    this.#insertions.push({ insertion, slot, stamp: this.#naive.insert(slot, chain) });
    return `insert ${chain.length} blocks for ${slot}`;
  }

  #join(): string {
    const capacity = this.#random.below(this.#workload.capacityMax + 1);
    const slot = this.#index.join(`endpoint-${this.#joined++}`, capacity);
    assert.equal(slot, this.#naive.join(capacity), this.#where);
    this.#slots.push(slot);
    return `join ${slot} with ${capacity}`;
  }

  /** Mostly a recent insertion, some of them twice. */
  #withdraw(): string {
    const count = this.#insertions.length;
    const back = this.#random.next() < 0.7 ? this.#random.below(5) : this.#random.below(Math.max(1, count));
    const entry = this.#insertions[count - 1 - back];
    if (entry === undefined) return "nothing to withdraw";
    this.#index.withdraw(entry.insertion);
    this.#naive.withdraw(entry.slot, entry.stamp);
    return `withdraw ${entry.stamp} from ${entry.slot}`;
  }

  #compare(where: string): void {
    let held = 0;
    for (const slot of this.#slots) {
      const size = this.#index.size(slot);
      assert.equal(size, this.#naive.size(slot), `${where}: size of ${slot}`);
      held += size;
    }
    assert.ok(this.#index.segments <= this.#index.holdings, where);
    assert.ok(this.#index.holdings <= held, where);
    for (let i = 0; i < 2; i++) {
      const chain = this.#chains.next();
      const expected = this.#naive.match(chain);
      this.#index.match(chain, this.#hits);
      assert.deepEqual([...this.#hits.subarray(0, expected.length)], expected, `${where}: hits`);
    }
  }
}
