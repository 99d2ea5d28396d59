import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndogenousInput } from "#core/input/input.ts";
import { ConfirmedBlocks } from "#core/prefix/confirmed-blocks.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";

/** What an engine's events are about, beside another engine's. */
export type CacheReport = Extract<
  EndogenousInput,
  { readonly kind: "blocks-stored" | "blocks-removed" | "blocks-cleared" | `kv-events-${string}` }
>;

interface Engine {
  readonly slot: number;
  capacityBlocks: number;
  isFollowed: boolean;
  /** It held blocks before that nobody reported: until it has stored as many as it has room for. */
  isLate: boolean;
  stored: number;
  /** By how many tokens the two were off of late, of requests whose cached tokens it reported: see `judge`. */
  eventsError: number;
  sizeError: number;
}

/** What a request weighs after the next one of its engine. */
const DECAY = 0.98;
/** Reports come a moment later than what they are about: so many tokens off in its favour. */
const SLACK_TOKENS = 1_024;

/**
 * What engines' caches held by their own KV events. An engine is taken at its word as long as its events come whole and
 * agree with the cached tokens that it reports at least as well as a cache of its size would: events that are another
 * engine's, or of other blocks than the prompts', do not.
 */
export class ReportedCaches {
  readonly #blocks = new ConfirmedBlocks();
  readonly #engines = new Map<EndpointId, Engine>();
  readonly #free: number[] = [];
  #slots = 0;

  join({ id }: Endpoint, capacityBlocks: number): void {
    const known = this.#engines.get(id);
    if (known !== undefined) {
      known.capacityBlocks = capacityBlocks;
      if (known.isFollowed) this.#blocks.resize(known.slot, capacityBlocks);
      return;
    }
    const slot = this.#free.pop() ?? this.#slots++;
    this.#engines.set(id, {
      slot,
      capacityBlocks,
      isFollowed: false,
      isLate: false,
      stored: 0,
      eventsError: 0,
      sizeError: 0,
    });
  }

  leave(id: EndpointId): void {
    const engine = this.#engines.get(id);
    if (engine === undefined) return;
    this.#unfollow(engine);
    this.#free.push(engine.slot);
    this.#engines.delete(id);
  }

  /** What was reported does not hold any more. */
  forgetAll(): void {
    for (const engine of this.#engines.values()) this.#lose(engine);
  }

  take(report: CacheReport): void {
    const engine = this.#engines.get(report.endpoint);
    if (engine === undefined) return;
    if (report.kind === "kv-events-alive") return this.#follow(engine, report.isComplete);
    if (!engine.isFollowed) return;
    switch (report.kind) {
      case "kv-events-lost":
        return this.#unfollow(engine);
      case "kv-events-missed":
        return this.#lose(engine);
      case "blocks-cleared":
        return this.#follow(engine, true);
      case "blocks-stored":
        if (report.medium !== "host") this.#store(engine, report.hashes);
        return;
      case "blocks-removed":
        if (report.medium !== "host") this.#blocks.removed(engine.slot, report.hashes);
        return;
    }
  }

  /** Whether its events are what its cache is. */
  isByEvents(id: EndpointId): boolean {
    const engine = this.#engines.get(id);
    if (engine === undefined || !engine.isFollowed || engine.isLate) return false;
    return engine.eventsError <= engine.sizeError + SLACK_TOKENS;
  }

  /** Leading blocks of the chain that it reported; 0 where it is not followed. */
  blocksAt(id: EndpointId, chain: BlockChain): number {
    const engine = this.#engines.get(id);
    return engine === undefined || !engine.isFollowed ? 0 : this.#blocks.leading(engine.slot, chain);
  }

  /** A request there had so many tokens cached, where it held so many by its events and by its size. */
  judge(id: EndpointId, cached: number, byEvents: number, bySize: number): void {
    const engine = this.#engines.get(id);
    if (engine === undefined || !engine.isFollowed || engine.isLate) return;
    engine.eventsError = DECAY * engine.eventsError + Math.abs(byEvents - cached);
    engine.sizeError = DECAY * engine.sizeError + Math.abs(bySize - cached);
  }

  #store(engine: Engine, hashes: Int32Array): void {
    this.#blocks.stored(engine.slot, hashes);
    engine.stored += hashes.length >> 1;
    if (engine.stored >= engine.capacityBlocks) engine.isLate = false;
  }

  #follow(engine: Engine, isComplete: boolean): void {
    if (engine.isFollowed) this.#blocks.clear(engine.slot);
    else this.#blocks.join(engine.slot, engine.capacityBlocks);
    engine.isFollowed = true;
    engine.isLate = !isComplete;
    engine.stored = 0;
  }

  #lose(engine: Engine): void {
    if (engine.isFollowed) this.#follow(engine, false);
  }

  #unfollow(engine: Engine): void {
    if (!engine.isFollowed) return;
    this.#blocks.leave(engine.slot);
    engine.isFollowed = false;
  }
}
