import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Insertion } from "#core/prefix/prefix-index.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";

/** What is remembered of all engines together without a bound of their own; beyond it the oldest is forgotten. */
const REMEMBERED_BLOCKS_MAX = 1 << 26;
const [SENT, COMPUTED, ASKED] = [0, 1, 2];

/** Room of an endpoint's cache in blocks. */
export type CapacityOf = (endpoint: Endpoint) => number;

interface Held {
  /** Slots in the two indexes. */
  readonly cache: number;
  readonly life: number;
}

/**
 * What engines' caches held, by what was sent to them, when they had computed it and how large they are; beside it what
 * an engine had computed since its cache was last empty, and what anybody asked for, was sent and had computed at all.
 * Every cache is a strict LRU over blocks, as a vLLM engine's is over those that nobody uses; an answer's blocks take
 * room whether or not anybody knows what they hold.
 */
export class EngineCaches {
  readonly #capacityOf: CapacityOf;
  readonly #caches = new ApproximateIndex();
  readonly #lives = new ApproximateIndex();
  readonly #all = new ApproximateIndex();
  readonly #held = new Map<EndpointId, Held>();
  #cacheHits = new Int32Array(16);
  #lifeHits = new Int32Array(16);
  readonly #allHits = new Int32Array(3);
  #answers = 0;

  constructor(capacityOf: CapacityOf) {
    this.#capacityOf = capacityOf;
    for (const what of ["sent", "computed", "asked"]) this.#all.join(what, REMEMBERED_BLOCKS_MAX);
  }

  get endpoints(): Iterable<EndpointId> {
    return this.#held.keys();
  }

  join(endpoint: Endpoint): void {
    const known = this.#held.get(endpoint.id);
    const capacity = this.#capacityOf(endpoint);
    if (known !== undefined) return this.#caches.resize(known.cache, capacity);
    const cache = this.#caches.join(endpoint.id, capacity);
    const life = this.#lives.join(endpoint.id, REMEMBERED_BLOCKS_MAX);
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

  /** Nothing that is remembered can match again. */
  forgetAll(): void {
    for (const endpoint of this.#held.keys()) this.clear(endpoint);
    for (const slot of [SENT, COMPUTED, ASKED]) this.#all.clear(slot);
  }

  /** Looks a chain up; the answers below are about it until the next one. */
  match(chain: BlockChain): void {
    this.#caches.match(chain, this.#cacheHits);
    this.#lives.match(chain, this.#lifeHits);
    this.#all.match(chain, this.#allHits);
  }

  /** Leading blocks that the endpoint held. */
  blocksAt(endpoint: EndpointId): number {
    const held = this.#held.get(endpoint);
    return held === undefined ? 0 : this.#cacheHits[held.cache]!;
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

  ask(chain: BlockChain): void {
    this.#all.insert(ASKED, chain);
  }

  send(chain: BlockChain): Insertion {
    return this.#all.insert(SENT, chain);
  }

  /** It did not get there, or was not computed: what this sending added and nobody has sent since. */
  unsend(receipt: Insertion): void {
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
