import { assert } from "../base/assert.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import type { Micros } from "../base/units.ts";
import { ApproximateIndex } from "./approximate.ts";
import type { RemovedBlocks, StoredBlocks } from "./block-report.ts";
import {
  type ApproximateReason,
  GUESSED,
  type Knowledge,
  type KvEventsLostReason,
  PRECISE,
} from "../endpoint/knowledge.ts";
import { PRECISE_TIMES, PreciseIndex, type PreciseTimes } from "./precise.ts";
import type { Insertion, ReportedIndex } from "./prefix-index.ts";
import type { Speculation } from "./speculation.ts";
import { ConfirmedBlocks } from "./confirmed-blocks.ts";

/** A receipt for both parts. */
class DualInsertion implements Insertion {
  readonly slot: number;
  readonly guess: Insertion;
  readonly speculation: Speculation;

  constructor(guess: Insertion, speculation: Speculation) {
    this.slot = guess.slot;
    this.guess = guess;
    this.speculation = speculation;
  }
}

interface Endpoint {
  capacityBlocks: number;
  follows: boolean;
  /** Why its events are not followed. */
  lost: ApproximateReason;
  /** Its cache had content before its events were followed. */
  late: boolean;
}

/**
 * One index of two minds: what an engine's events report where they are alive, and a guess from what was sent there where
 * they are not; by endpoint. The guess is kept up all the time, so that it stands in at once. Prompts whose tokens are
 * not the engine's own are guessed everywhere.
 */
export class DualIndex implements ReportedIndex {
  readonly #guessed = new ApproximateIndex();
  readonly #precise: PreciseIndex;
  readonly #host = new HostBlocks();
  /** By slot. */
  readonly #endpoints: (Endpoint | undefined)[] = [];
  #following = 0;
  #now: Micros = 0;
  #preciseHits = new Int32Array(0);

  constructor(times: PreciseTimes = PRECISE_TIMES) {
    this.#precise = new PreciseIndex(times);
  }

  /** Slots that were ever taken. */
  get endpoints(): number {
    return this.#endpoints.length;
  }

  get bytes(): number {
    return this.#guessed.bytes + this.#precise.bytes + this.#host.bytes;
  }

  /** Runs that the reported blocks lie in. */
  get runs(): number {
    return this.#precise.runs;
  }

  get strayRemovals(): number {
    return this.#precise.strayRemovals + this.#host.strayRemovals;
  }

  get refusedBlocks(): number {
    return this.#precise.refusedBlocks + this.#host.refusedBlocks;
  }

  /** Prompts under way that count as held no longer since there were too many. */
  get endedEarly(): number {
    return this.#precise.endedEarly;
  }

  get unreportedPrompts(): number {
    return this.#precise.unreported;
  }

  join(endpoint: EndpointId, capacityBlocks: number): number {
    const slot = this.#guessed.join(endpoint, capacityBlocks);
    this.#precise.join(slot, endpoint, capacityBlocks);
    this.#endpoints[slot] = { capacityBlocks, follows: false, lost: "no-events", late: false };
    return slot;
  }

  leave(slot: number): void {
    this.#unfollow(slot, "no-events");
    this.#guessed.leave(slot);
    this.#precise.leave(slot);
    this.#endpoints[slot] = undefined;
  }

  resize(slot: number, capacityBlocks: number): void {
    this.#guessed.resize(slot, capacityBlocks);
    this.#precise.resize(slot, capacityBlocks);
    this.#endpoint(slot).capacityBlocks = capacityBlocks;
  }

  clear(slot: number): void {
    this.#host.forget(slot);
    this.#guessed.clear(slot);
    this.#precise.clear(slot);
  }

  size(slot: number): number {
    return this.#isPrecise(slot) ? this.#precise.size(slot) : this.#guessed.size(slot);
  }

  match(chain: BlockChain, hits: Int32Array, isReported = false): void {
    if (this.#following === 0 || !isReported) return this.#guessed.match(chain, hits);
    if (this.#guesses()) this.#guessed.match(chain, hits);
    else hits.fill(0);
    if (this.#preciseHits.length < hits.length) this.#preciseHits = new Int32Array(hits.length);
    this.#precise.match(chain, this.#preciseHits);
    for (let slot = 0; slot < hits.length; slot++) {
      if (this.#isPrecise(slot)) hits[slot] = this.#preciseHits[slot]!;
    }
  }

  get holdsHostBlocks(): boolean {
    return !this.#host.isUnused;
  }

  /** Blocks of the endpoint in its host's memory. */
  hostSize(slot: number): number {
    return this.#host.size(slot);
  }

  matchHost(chain: BlockChain, hits: Int32Array, held: Int32Array): void {
    held.set(hits);
    this.#host.follow(chain, held);
    for (let slot = 0; slot < held.length; slot++) {
      if (!this.#isPrecise(slot)) held[slot] = hits[slot]!;
    }
  }

  insert(slot: number, chain: BlockChain, isReported = false): Insertion {
    const guess = this.#guessed.insert(slot, chain);
    if (!isReported || !this.#endpoint(slot).follows) return guess;
    return new DualInsertion(guess, this.#precise.speculate(slot, chain));
  }

  withdraw(insertion: Insertion): void {
    if (!(insertion instanceof DualInsertion)) return this.#guessed.withdraw(insertion);
    this.#guessed.withdraw(insertion.guess);
    this.#precise.withdraw(insertion.speculation);
  }

  computed(insertion: Insertion, at: Micros): void {
    if (insertion instanceof DualInsertion) this.#precise.computed(insertion.speculation, at);
  }

  advance(at: Micros): void {
    this.#now = at;
    if (this.#following > 0) this.#precise.advance(at);
  }

  followed(slot: number, isComplete: boolean): void {
    const endpoint = this.#endpoint(slot);
    if (!endpoint.follows) this.#following++;
    endpoint.follows = true;
    endpoint.late = !isComplete;
    this.#host.forget(slot);
    this.#precise.advance(this.#now);
    this.#precise.follow(slot, isComplete);
  }

  lost(slot: number, reason: KvEventsLostReason): void {
    this.#unfollow(slot, reason);
  }

  missed(slot: number): void {
    this.#host.forget(slot);
    this.#precise.missed(slot);
  }

  stored(slot: number, report: StoredBlocks): void {
    const endpoint = this.#endpoint(slot);
    if (report.medium === "host") {
      if (endpoint.follows) this.#host.stored(slot, endpoint.capacityBlocks, report.hashes);
      return;
    }
    this.#precise.stored(slot, report);
    // What was there before is gone by now, or known from requests that used it.
    if (endpoint.late && this.#precise.reported(slot) >= endpoint.capacityBlocks) endpoint.late = false;
  }

  removed(slot: number, report: RemovedBlocks): void {
    if (report.medium === "host") this.#host.removed(slot, report.hashes);
    else this.#precise.removed(slot, report);
  }

  emptied(slot: number, at: Micros): void {
    this.#host.forget(slot);
    this.#guessed.clear(slot);
    this.#precise.emptied(slot, at);
    this.#endpoint(slot).late = false;
  }

  knowledge(slot: number): Knowledge {
    const endpoint = this.#endpoints[slot];
    if (endpoint === undefined || !endpoint.follows) return GUESSED[endpoint?.lost ?? "no-events"];
    if (endpoint.late) return GUESSED.late;
    return this.#precise.isSilent(slot) ? GUESSED.silent : PRECISE;
  }

  #isPrecise(slot: number): boolean {
    const endpoint = this.#endpoints[slot];
    return endpoint !== undefined && endpoint.follows && !endpoint.late && !this.#precise.isSilent(slot);
  }

  /** Whether some endpoint is not known precisely. */
  #guesses(): boolean {
    for (let slot = 0; slot < this.#endpoints.length; slot++) {
      if (this.#endpoints[slot] !== undefined && !this.#isPrecise(slot)) return true;
    }
    return false;
  }

  #unfollow(slot: number, reason: ApproximateReason): void {
    const endpoint = this.#endpoint(slot);
    if (endpoint.follows) this.#following--;
    endpoint.follows = false;
    endpoint.lost = reason;
    this.#host.forget(slot);
    this.#precise.unfollow(slot);
    // Nobody else may come by: what it had under way is dropped here.
    this.#precise.advance(this.#now);
  }

  #endpoint(slot: number): Endpoint {
    const endpoint = this.#endpoints[slot];
    assert(endpoint !== undefined, "the slot belongs to an endpoint");
    return endpoint;
  }
}

/** Blocks in its host's memory that one endpoint may report, as a multiple of its device's. */
const BLOCKS_PER_CAPACITY_MAX = 64;

/**
 * Blocks that engines report in the memory of their hosts. An engine looks there for what follows the blocks on its
 * device, so what counts of a chain is the run of blocks that begins where the device's end.
 */
class HostBlocks {
  readonly #blocks = new ConfirmedBlocks({ referencesPerCapacity: BLOCKS_PER_CAPACITY_MAX, reserves: false });
  /** Slots of which something was reported. */
  readonly #slots = new Set<number>();

  get bytes(): number {
    return this.#blocks.bytes;
  }

  /** Whether nothing was ever reported, and nothing need be looked up. */
  get isUnused(): boolean {
    return this.#slots.size === 0;
  }

  get strayRemovals(): number {
    return this.#blocks.strayRemovals;
  }

  get refusedBlocks(): number {
    return this.#blocks.refusedBlocks;
  }

  /** Distinct blocks of the endpoint there. */
  size(slot: number): number {
    return this.#slots.has(slot) ? this.#blocks.size(slot) : 0;
  }

  stored(slot: number, capacityBlocks: number, hashes: Int32Array): void {
    if (!this.#slots.has(slot)) {
      this.#slots.add(slot);
      this.#blocks.join(slot, capacityBlocks);
    }
    this.#blocks.stored(slot, hashes);
  }

  removed(slot: number, hashes: Int32Array): void {
    if (this.#slots.has(slot)) this.#blocks.removed(slot, hashes);
  }

  /** Nothing is known any more of what the endpoint has there. */
  forget(slot: number): void {
    if (this.#slots.delete(slot)) this.#blocks.leave(slot);
  }

  /** Raises `hits[slot]`, the leading blocks on the device, by the blocks that follow them in the host's memory. */
  follow(chain: BlockChain, hits: Int32Array): void {
    for (let depth = this.#begin(hits, 0); depth < chain.length;) {
      depth = this.#begin(hits, this.#blocks.match(chain, hits, depth));
    }
  }

  /** The least depth from `from` on at which some endpoint's blocks on its device end; Infinity for none. */
  #begin(hits: Int32Array, from: number): number {
    let first = Infinity;
    for (const slot of this.#slots) {
      const depth = hits[slot]!;
      if (depth >= from && depth < first) first = depth;
    }
    return first;
  }
}
