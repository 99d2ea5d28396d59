import { assert } from "../base/assert.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import { type Micros, MICROS_PER_MILLI, MICROS_PER_SECOND } from "../base/units.ts";
import { ApproximateIndex } from "./approximate.ts";
import type { RemovedBlocks, StoredBlocks } from "./block-report.ts";
import { ConfirmedBlocks } from "./confirmed-blocks.ts";
import { Speculation } from "./speculation.ts";

/** Prompts that wait to be computed; with more, the oldest counts no longer. */
export const SPECULATIONS_MAX = 65_536;

export interface PreciseTimes {
  /** A prompt that was not computed after so long counts as held no longer. */
  readonly speculationMicros: Micros;
  /** Events of a step may come so much later than the first token that it made. */
  readonly graceMicros: Micros;
  /** An engine that computes and reports nothing for so long is silent. */
  readonly silentMicros: Micros;
}

export const PRECISE_TIMES: PreciseTimes = {
  speculationMicros: 60 * MICROS_PER_SECOND,
  graceMicros: 500 * MICROS_PER_MILLI,
  silentMicros: 2 * MICROS_PER_SECOND,
};

/**
 * Knows what each engine's prefix cache holds from the engine's own events. Between a decision and the events that it
 * causes, its chain counts as held: a speculation, which ends soon after the first token, when the events have come, or
 * when it is withdrawn. An endpoint's match is the longer one of what its engine reported and what is speculated.
 *
 * Where an engine may hold more than it reported to us, what our own requests computed there is inferred at their first
 * tokens; an engine that removes blocks which we do not know takes all that was inferred with them.
 *
 * Time is what `advance` and the events were given last. Slots are the caller's, the lowest free one first.
 */
export class PreciseIndex {
  readonly #times: PreciseTimes;
  readonly #confirmed = new ConfirmedBlocks();
  readonly #speculated = new ApproximateIndex();
  readonly #capacities: number[] = [];
  /** By slot. */
  readonly #followed: (FollowedEndpoint | undefined)[] = [];
  /** In order of time, from `#first` on. */
  readonly #speculations: Speculation[] = [];
  #first = 0;
  /** Those whose first token was seen, in its order, from `#firstBegun` on. */
  readonly #begun: Speculation[] = [];
  #firstBegun = 0;
  #now: Micros = 0;
  #speculatedHits = new Int32Array(0);
  /** Speculations that ended because there were too many. */
  endedEarly = 0;
  /**
   * Prompts that were computed without a report of their blocks, where all is reported: the tokens are not the
   * engine's.
   */
  unreported = 0;

  constructor(times: PreciseTimes = PRECISE_TIMES) {
    this.#times = times;
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

  join(slot: number, endpoint: EndpointId, capacityBlocks: number): void {
    const own = this.#speculated.join(endpoint, capacityBlocks);
    assert(own === slot, "slots are given lowest first");
    this.#capacities[slot] = capacityBlocks;
  }

  leave(slot: number): void {
    this.unfollow(slot);
    this.#speculated.leave(slot);
  }

  resize(slot: number, capacityBlocks: number): void {
    this.#capacities[slot] = capacityBlocks;
    this.#speculated.resize(slot, capacityBlocks);
    if (this.#followed[slot] !== undefined) this.#confirmed.resize(slot, capacityBlocks);
  }

  /** The endpoint's events come from now on, of an empty cache or with all before (`complete`). */
  follow(slot: number, complete: boolean): void {
    this.unfollow(slot);
    this.#confirmed.join(slot, this.#capacities[slot]!);
    this.#followed[slot] = new FollowedEndpoint(complete, this.#now);
  }

  unfollow(slot: number): void {
    const followed = this.#followed[slot];
    if (followed === undefined) return;
    for (const speculation of followed.open) speculation.retire();
    this.#followed[slot] = undefined;
    this.#speculated.clear(slot);
    this.#confirmed.leave(slot);
  }

  /** Forgets everything of the endpoint, which was started anew. */
  clear(slot: number): void {
    const followed = this.#followed[slot];
    if (followed !== undefined) this.follow(slot, followed.complete);
  }

  /** The engine reports that its cache is empty: in order with what it stores, so prompts under way come after it. */
  emptied(slot: number, at: Micros): void {
    this.advance(at);
    const followed = this.#reports(slot);
    if (followed === undefined) return;
    this.#confirmed.clear(slot);
    followed.complete = true;
  }

  /** Events are missing: which blocks went with them nobody knows. */
  missed(slot: number): void {
    const followed = this.#followed[slot];
    if (followed === undefined) return;
    this.#confirmed.clear(slot);
    followed.complete = false;
  }

  /** Distinct blocks that the engine reported. */
  size(slot: number): number {
    return this.#followed[slot] === undefined ? 0 : this.#confirmed.size(slot);
  }

  /** Blocks that it stored since it is followed. */
  reported(slot: number): number {
    return this.#followed[slot]?.reported ?? 0;
  }

  isSilent(slot: number): boolean {
    const followed = this.#followed[slot];
    if (followed === undefined || followed.doubtSince < 0) return false;
    return this.#now - followed.doubtSince >= this.#times.silentMicros;
  }

  match(chain: BlockChain, hits: Int32Array): void {
    hits.fill(0);
    this.#confirmed.match(chain, hits);
    if (this.#speculated.holdings === 0) return;
    if (this.#speculatedHits.length < hits.length) this.#speculatedHits = new Int32Array(hits.length);
    this.#speculated.match(chain, this.#speculatedHits);
    for (let slot = 0; slot < hits.length; slot++) hits[slot] = Math.max(hits[slot]!, this.#speculatedHits[slot]!);
  }

  /** A prompt was sent to an endpoint that is followed. */
  speculate(slot: number, chain: BlockChain): Speculation {
    const followed = this.#followed[slot];
    assert(followed !== undefined, "speculations are about endpoints that are followed");
    this.#confirmed.learn(chain);
    const speculation = new Speculation(slot, this.#speculated.insert(slot, chain), chain, this.#now);
    if (this.#speculations.length - this.#first === SPECULATIONS_MAX) {
      this.#end(this.#speculations[this.#first]!);
      this.#first++;
      this.endedEarly++;
    }
    this.#speculations.push(speculation);
    followed.open.push(speculation);
    return speculation;
  }

  withdraw(speculation: Speculation): void {
    if (speculation.ended) return;
    this.#speculated.withdraw(speculation.insertion);
    this.#end(speculation);
  }

  /** The engine computed the prompt: its blocks are there, and reported soon. */
  computed(speculation: Speculation, at: Micros): void {
    this.advance(at);
    const followed = this.#followed[speculation.slot];
    if (speculation.ended || speculation.begunAt >= 0 || followed === undefined) return;
    const { slot, chain } = speculation;
    speculation.begunAt = at;
    speculation.unreported = this.#confirmed.leading(slot, chain) < chain.length;
    // What the engine reports from now on counts, such as that it overwrites them.
    if (!speculation.unreported) return this.#end(speculation);
    if (!followed.complete) this.#confirmed.infer(slot, chain);
    this.#begun.push(speculation);
    followed.awaited.push(speculation);
  }

  stored(slot: number, { at, hashes, starts = [] }: StoredBlocks): void {
    this.advance(at);
    const followed = this.#reports(slot);
    if (followed === undefined) return;
    const blocks = hashes.length >> 1;
    followed.reported += blocks;
    for (let from = 0, chain = 0; chain <= starts.length; chain++) {
      const to = starts[chain] ?? blocks;
      this.#confirmed.stored(slot, starts.length === 0 ? hashes : hashes.subarray(2 * from, 2 * to));
      if (followed.awaited.length > 0) this.#endReported(slot, followed);
      from = to;
    }
  }

  removed(slot: number, { at, hashes, unknownBlocks = 0 }: RemovedBlocks): void {
    this.advance(at);
    if (this.#reports(slot) === undefined) return;
    this.#confirmed.removed(slot, hashes);
    if (unknownBlocks > 0) this.#confirmed.forgetInferred(slot);
  }

  /** Ends the speculations whose time is over. */
  advance(at: Micros): void {
    this.#now = Math.max(this.#now, at);
    for (; this.#firstBegun < this.#begun.length; this.#firstBegun++) {
      const begun = this.#begun[this.#firstBegun]!;
      if (begun.begunAt + this.#times.graceMicros > this.#now) break;
      if (!begun.ended) this.#settle(begun);
    }
    this.#firstBegun = dropBefore(this.#begun, this.#firstBegun);
    for (; this.#first < this.#speculations.length; this.#first++) {
      const first = this.#speculations[this.#first]!;
      if (!first.ended && first.at + this.#times.speculationMicros > this.#now) break;
      this.#end(first);
    }
    this.#first = dropBefore(this.#speculations, this.#first);
  }

  #endReported(slot: number, followed: FollowedEndpoint): void {
    followed.awaited = followed.awaited.filter((awaited) => {
      if (awaited.ended || this.#confirmed.leading(slot, awaited.chain) < awaited.chain.length) return !awaited.ended;
      this.#end(awaited);
      return false;
    });
  }

  /** Its events have come, or will not. */
  #settle(speculation: Speculation): void {
    const { slot, chain, at, unreported } = speculation;
    const followed = this.#followed[slot]!;
    followed.awaited = followed.awaited.filter((awaited) => awaited !== speculation);
    if (unreported && followed.eventAt < at && followed.doubtSince < 0) followed.doubtSince = this.#now;
    if (unreported && followed.complete && this.#confirmed.leading(slot, chain) < chain.length) this.unreported++;
    this.#end(speculation);
  }

  /** Also what older ones touched that have ended is forgotten, once no older one is open. */
  #end(speculation: Speculation): void {
    if (speculation.ended) return;
    speculation.retire();
    const followed = this.#followed[speculation.slot];
    if (followed === undefined) return;
    const last = followed.dropEnded();
    if (last !== undefined) this.#speculated.expire(last.insertion);
  }

  #reports(slot: number): FollowedEndpoint | undefined {
    const followed = this.#followed[slot];
    if (followed === undefined) return undefined;
    followed.eventAt = this.#now;
    followed.doubtSince = -1;
    return followed;
  }
}

/** An endpoint whose events are followed. */
class FollowedEndpoint {
  /** False where it may hold blocks that were never reported to us. */
  complete: boolean;
  /** Blocks reported since it was followed. */
  reported = 0;
  eventAt: Micros;
  /** Since when it computes and reports nothing; -1 where that is not so. */
  doubtSince: Micros = -1;
  /** In order of insertion, from `#first` on. */
  readonly open: Speculation[] = [];
  #first = 0;
  /** Computed, and not reported whole. */
  awaited: Speculation[] = [];

  constructor(complete: boolean, now: Micros) {
    this.complete = complete;
    this.eventAt = now;
  }

  /** Forgets the speculations that ended and have no open one before them; the last of them, if there are any. */
  dropEnded(): Speculation | undefined {
    const { open } = this;
    let first = this.#first;
    while (first < open.length && open[first]!.ended) first++;
    if (first === this.#first) return undefined;
    const last = open[first - 1];
    this.#first = dropBefore(open, first);
    return last;
  }
}

/**
 * Drops the entries before `first` once they are the larger part: constant work per entry. Returns where the first one
 * stands from then on.
 */
function dropBefore(entries: unknown[], first: number): number {
  if (first === 0 || 2 * first < entries.length) return first;
  entries.splice(0, first);
  return 0;
}
