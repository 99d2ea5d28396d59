import { assert } from "../assert.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import { EMPTY_CHAIN, type BlockChain } from "../prompt/block-chain.ts";
import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import { ApproximateIndex } from "./approximate.ts";
import { ConfirmedBlocks } from "./confirmed-blocks.ts";
import type { Insertion, PrefixIndex } from "./prefix-index.ts";

/** Insertions that wait for their end; with more, the oldest ends early. */
export const SPECULATIONS_MAX = 65_536;

/** llm-d's time from a decision until its blocks must have been reported. */
const SPECULATION_MICROS_DEFAULT: Micros = 2 * MICROS_PER_SECOND;

interface Speculation {
  readonly insertion: Insertion;
  readonly at: Micros;
}

/**
 * Knows what each engine's prefix cache holds from the engines' own events. Between a decision and the events that it
 * causes, its chain counts as held: an insertion is a speculation that ends after a set time, or when it is withdrawn.
 * An endpoint's match is the longer one of what its engine reported and what is speculated.
 *
 * Time is what `advance`, `stored` and `removed` were given last.
 */
export class PreciseIndex implements PrefixIndex {
  readonly #speculationMicros: Micros;
  readonly #confirmed = new ConfirmedBlocks();
  readonly #speculated = new ApproximateIndex();
  /** In order of time, from `#first` on. */
  readonly #speculations: Speculation[] = [];
  #first = 0;
  #now: Micros = 0;
  #speculatedHits = new Int32Array(0);
  /** Speculations that ended because there were too many. */
  endedEarly = 0;

  /** `speculationMicros` 0 speculates not at all. */
  constructor(speculationMicros: Micros = SPECULATION_MICROS_DEFAULT) {
    assert(speculationMicros >= 0, "a time span is not negative");
    this.#speculationMicros = speculationMicros;
  }

  get bytes(): number {
    return this.#confirmed.bytes + this.#speculated.bytes;
  }

  /** Runs that the reported blocks lie in. */
  get runs(): number {
    return this.#confirmed.runs;
  }

  /** Blocks that engines removed without having stored them: a sign of lost events. */
  get strayRemovals(): number {
    return this.#confirmed.strayRemovals;
  }

  /** Blocks that were not recorded because their endpoint reported far more than it has room for. */
  get refusedBlocks(): number {
    return this.#confirmed.refusedBlocks;
  }

  join(endpoint: EndpointId, capacityBlocks: number): number {
    const slot = this.#speculated.join(endpoint, capacityBlocks);
    this.#confirmed.join(slot, capacityBlocks);
    return slot;
  }

  leave(slot: number): void {
    this.#confirmed.leave(slot);
    this.#speculated.leave(slot);
  }

  resize(slot: number, capacityBlocks: number): void {
    this.#speculated.resize(slot, capacityBlocks);
    this.#confirmed.resize(slot, capacityBlocks);
  }

  clear(slot: number): void {
    this.#confirmed.clear(slot);
    this.#speculated.clear(slot);
  }

  /** Distinct blocks that the engine reported. */
  size(slot: number): number {
    return this.#confirmed.size(slot);
  }

  match(chain: BlockChain, hits: Int32Array): void {
    hits.fill(0);
    this.#confirmed.match(chain, hits);
    if (this.#speculated.holdings === 0) return;
    if (this.#speculatedHits.length < hits.length) this.#speculatedHits = new Int32Array(hits.length);
    this.#speculated.match(chain, this.#speculatedHits);
    for (let slot = 0; slot < hits.length; slot++) hits[slot] = Math.max(hits[slot]!, this.#speculatedHits[slot]!);
  }

  insert(slot: number, chain: BlockChain): Insertion {
    this.#confirmed.learn(chain);
    if (this.#speculationMicros === 0) return this.#speculated.insert(slot, EMPTY_CHAIN);
    const insertion = this.#speculated.insert(slot, chain);
    if (this.#speculations.length - this.#first === SPECULATIONS_MAX) {
      this.#endFirst();
      this.endedEarly++;
    }
    this.#speculations.push({ insertion, at: this.#now });
    return insertion;
  }

  withdraw(insertion: Insertion): void {
    this.#speculated.withdraw(insertion);
  }

  stored(slot: number, hashes: Int32Array, at: Micros): void {
    this.advance(at);
    this.#confirmed.stored(slot, hashes);
  }

  removed(slot: number, hashes: Int32Array, at: Micros): void {
    this.advance(at);
    this.#confirmed.removed(slot, hashes);
  }

  /** Ends the speculations that are as old as they may get. */
  advance(at: Micros): void {
    this.#now = at;
    for (;;) {
      const first = this.#speculations[this.#first];
      if (first === undefined || first.at + this.#speculationMicros > at) return;
      this.#endFirst();
    }
  }

  #endFirst(): void {
    const first = this.#speculations[this.#first];
    if (first !== undefined) this.#speculated.expire(first.insertion);
    this.#first++;
    // The ended part is dropped once it is the larger one: constant work per insertion.
    if (2 * this.#first < this.#speculations.length) return;
    this.#speculations.splice(0, this.#first);
    this.#first = 0;
  }
}
