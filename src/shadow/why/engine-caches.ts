import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Insertion } from "#core/prefix/prefix-index.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { type CacheReport, ReportedCaches } from "./reported-caches.ts";

/** What is remembered of all engines together without a bound of their own; beyond it the oldest is forgotten. */
const REMEMBERED_BLOCKS_MAX = 1 << 26;
const [SENT, COMPUTED, ASKED] = [0, 1, 2];

/** What is remembered beyond what caches have room for; beyond it the oldest is forgotten. */
export interface RememberedBounds {
  readonly blocks: number;
  /** Of one engine, as a multiple of its cache's size. */
  readonly perCapacity: number;
}

const UNBOUNDED: RememberedBounds = { blocks: REMEMBERED_BLOCKS_MAX, perCapacity: Infinity };

/** Room of an endpoint's cache in blocks. */
export type CapacityOf = (endpoint: Endpoint) => number;

interface Held {
  /** Slots in the two indexes. */
  readonly cache: number;
  readonly life: number;
}

/**
 * What engines' caches held: as they report it themselves, where they do and are right, else by what was sent to them, when
 * they had computed it and how large they are. Beside it what an engine had computed since its cache was last empty, and
 * what anybody asked for, was sent and had computed at all.
 * Every cache is a strict LRU over blocks, as a vLLM engine's is over those that nobody uses; an answer's blocks take
 * room whether or not anybody knows what they hold.
 */
export class EngineCaches {
  readonly #capacityOf: CapacityOf;
  readonly #bounds: RememberedBounds;
  readonly #caches = new ApproximateIndex();
  readonly #lives = new ApproximateIndex();
  readonly #all = new ApproximateIndex();
  readonly #reported = new ReportedCaches();
  readonly #held = new Map<EndpointId, Held>();
  #chain: BlockChain | undefined;
  #cacheHits = new Int32Array(16);
  #lifeHits = new Int32Array(16);
  readonly #allHits = new Int32Array(3);
  #answers = 0;

  constructor(capacityOf: CapacityOf, bounds: RememberedBounds = UNBOUNDED) {
    this.#capacityOf = capacityOf;
    this.#bounds = bounds;
    for (const what of ["sent", "computed", "asked"]) this.#all.join(what, bounds.blocks);
  }

  get endpoints(): Iterable<EndpointId> {
    return this.#held.keys();
  }

  join(endpoint: Endpoint): void {
    const known = this.#held.get(endpoint.id);
    const capacity = this.#capacityOf(endpoint);
    this.#reported.join(endpoint, capacity);
    if (known !== undefined) return this.#caches.resize(known.cache, capacity);
    const cache = this.#caches.join(endpoint.id, capacity);
    const life = this.#lives.join(endpoint.id, Math.min(this.#bounds.blocks, this.#bounds.perCapacity * capacity));
    this.#held.set(endpoint.id, { cache, life });
    const slots = Math.max(cache, life) + 1;
    if (slots > this.#cacheHits.length) this.#cacheHits = new Int32Array(2 * slots);
    if (slots > this.#lifeHits.length) this.#lifeHits = new Int32Array(2 * slots);
  }

  leave(endpoint: EndpointId): void {
    const held = this.#held.get(endpoint);
    if (held === undefined) return;
    this.#caches.leave(held.cache);
    this.#lives.leave(held.life);
    this.#reported.leave(endpoint);
    this.#held.delete(endpoint);
  }

  leaveAll(): void {
    for (const endpoint of this.#held.keys()) this.leave(endpoint);
  }

  /** Its cache is empty. */
  clear(endpoint: EndpointId): void {
    const held = this.#held.get(endpoint);
    if (held === undefined) return;
    this.#caches.clear(held.cache);
    this.#lives.clear(held.life);
  }

  /** An engine's own word about its cache. */
  report(report: CacheReport): void {
    if (report.kind === "blocks-cleared") this.clear(report.endpoint);
    this.#reported.take(report);
  }

  /** Some reports were lost on their way. */
  forgetReports(): void {
    this.#reported.forgetAll();
  }

  /** Nothing that is remembered can match again. */
  forgetAll(): void {
    this.#reported.forgetAll();
    for (const endpoint of this.#held.keys()) this.clear(endpoint);
    for (const slot of [SENT, COMPUTED, ASKED]) this.#all.clear(slot);
  }

  /**
   * Looks a chain up; the answers below are about it until the next one. `isExact`: it is of the engines' own tokens, so that
   * what they report can be compared.
   */
  match(chain: BlockChain, isExact: boolean): void {
    this.#chain = isExact ? chain : undefined;
    this.#caches.match(chain, this.#cacheHits);
    this.#lives.match(chain, this.#lifeHits);
    this.#all.match(chain, this.#allHits);
  }

  /** Leading blocks that the endpoint held. */
  blocksAt(endpoint: EndpointId): number {
    return this.isByEvents(endpoint) ? this.eventBlocksAt(endpoint) : this.modelledAt(endpoint);
  }

  /** Whether that is the engine's own word. */
  isByEvents(endpoint: EndpointId): boolean {
    return this.#chain !== undefined && this.#reported.isByEvents(endpoint);
  }

  eventBlocksAt(endpoint: EndpointId): number {
    return this.#chain === undefined ? 0 : this.eventBlocksOf(endpoint, this.#chain);
  }

  /** The same of any chain. */
  eventBlocksOf(endpoint: EndpointId, chain: BlockChain): number {
    return this.#reported.blocksAt(endpoint, chain);
  }

  modelledAt(endpoint: EndpointId): number {
    const held = this.#held.get(endpoint);
    return held === undefined ? 0 : this.#cacheHits[held.cache]!;
  }

  /** A request there found so many tokens, where it held so many by its events and by its size. */
  judge(endpoint: EndpointId, cached: number, byEvents: number, bySize: number): void {
    this.#reported.judge(endpoint, cached, byEvents, bySize);
  }

  /** Leading blocks that it had computed since its cache was last empty. */
  everAt(endpoint: EndpointId): number {
    const held = this.#held.get(endpoint);
    return held === undefined ? 0 : this.#lifeHits[held.life]!;
  }

  get asked(): number {
    return this.#allHits[ASKED]!;
  }

  get sent(): number {
    return this.#allHits[SENT]!;
  }

  get computed(): number {
    return this.#allHits[COMPUTED]!;
  }

  ask(chain: BlockChain): Insertion {
    return this.#all.insert(ASKED, chain);
  }

  send(chain: BlockChain): Insertion {
    return this.#all.insert(SENT, chain);
  }

  /** It did not get there, or was not computed: what this asking or sending added and nobody has since. */
  withdraw(receipt: Insertion): void {
    this.#all.withdraw(receipt);
  }

  /** The endpoint has the chain, and uses it now. */
  compute(endpoint: EndpointId, chain: BlockChain): void {
    this.#all.insert(SENT, chain);
    this.#all.insert(COMPUTED, chain);
    const held = this.#held.get(endpoint);
    if (held === undefined) return;
    this.#lives.insert(held.life, chain);
    this.#caches.insert(held.cache, chain);
  }

  /** The same of an answer that others may ask for. */
  answer(endpoint: EndpointId, chain: BlockChain): void {
    this.#all.insert(ASKED, chain);
    this.compute(endpoint, chain);
  }

  /** The endpoint uses the chain, and blocks behind it that nobody else can ask for take room. */
  occupy(endpoint: EndpointId, chain: BlockChain): void {
    const held = this.#held.get(endpoint);
    if (held !== undefined) this.#caches.insert(held.cache, chain);
  }

  /** Hashes of so many blocks that no prompt has. */
  unknownBlocks(count: number): Int32Array {
    const hashes = new Int32Array(2 * count);
    for (let i = 0; i < count; i++) {
      hashes[2 * i] = ++this.#answers;
      hashes[2 * i + 1] = UNKNOWN_MARK;
    }
    return hashes;
  }
}

/** High word of hashes of which nobody knows what they stand for; one in 4e9 of the others has it too, and another low one. */
const UNKNOWN_MARK = 0x5eed_b10c;
