import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { KvEventsLostReason } from "#core/endpoint/knowledge.ts";
import type { Micros } from "#core/base/units.ts";
import { inTurns, loopTurn, STAYS } from "../base/loop-turn.ts";
import type { Intake } from "../base/intake.ts";
import type { BlockTranslator } from "./block-translator.ts";
import { decodeBatch } from "./decode-batch.ts";
import type { BlockRemoved, BlockStored } from "./kv-event.ts";
import type { LinkListener } from "./link-listener.ts";

/** Tokens that are hashed before whatever else the event loop has to do gets its turn: about half a millisecond. */
const TOKENS_PER_TURN = 16_384;
/** Removals take a tenth of the time of a block's tokens. */
const TOKENS_PER_REMOVAL = 2;
/** What an event takes beside its blocks, which it may be without. */
const TOKENS_PER_EVENT = 64;

export interface FeedCounts {
  events: number;
  /** Events that this version does not read. */
  ignored: number;
  /** Blocks of the prompts' size. */
  stored: number;
  removed: number;
  /** The same in the memory of the engine's host. */
  storedInHost: number;
  removedFromHost: number;
  /** Blocks of the engine whose stores cannot be put into our hashes, and removals of such. */
  untranslated: number;
  unknownRemoved: number;
  cleared: number;
}

export interface FeedContext {
  readonly endpoint: EndpointId;
  readonly intake: Intake;
  readonly translator: BlockTranslator;
  readonly now: () => Micros;
  /** The endpoint's events are followed or not, from now on. */
  readonly changed: (state: "precise" | "late" | KvEventsLostReason) => void;
}

/** Puts what one publisher sends into the router, in the router's own hashes. */
export class EndpointFeed implements LinkListener {
  readonly counts: FeedCounts = {
    events: 0,
    ignored: 0,
    stored: 0,
    removed: 0,
    storedInHost: 0,
    removedFromHost: 0,
    untranslated: 0,
    unknownRemoved: 0,
    cleared: 0,
  };
  readonly #context: FeedContext;
  #isAlive = false;
  #stopped = false;
  #stores: Int32Array[] = [];
  #removals: Int32Array[] = [];
  #unknownRemoved = 0;
  /** Where the stores or removals at hand were. */
  #inHost = false;

  constructor(context: FeedContext) {
    this.#context = context;
  }

  alive(isComplete: boolean): void {
    if (this.#stopped) return;
    const { intake, endpoint, translator, now, changed } = this.#context;
    this.#isAlive = true;
    translator.clear();
    intake.accept({ kind: "kv-events-alive", at: now(), endpoint, isComplete });
    changed(isComplete ? "precise" : "late");
  }

  async message(payload: Uint8Array): Promise<void> {
    const { events, ignored } = await inTurns(decodeBatch(payload), STAYS);
    this.counts.ignored += ignored;
    let left = TOKENS_PER_TURN;
    for (const event of events) {
      if (this.#stopped || !this.#isAlive) return;
      if (left <= 0) {
        this.#flush();
        await loopTurn(STAYS);
        left = TOKENS_PER_TURN;
      }
      this.counts.events++;
      left -= TOKENS_PER_EVENT;
      if (event.kind === "stored") left -= this.#stored(event);
      else if (event.kind === "removed") left -= this.#removed(event);
      else this.#cleared();
    }
    this.#flush();
  }

  missed(): void {
    if (!this.#isAlive || this.#stopped) return;
    const { intake, endpoint, translator, now } = this.#context;
    this.#drop();
    translator.missed();
    intake.accept({ kind: "kv-events-missed", at: now(), endpoint });
  }

  restarted(): void {
    if (this.#stopped) return;
    const { intake, endpoint, translator, now } = this.#context;
    this.#drop();
    translator.clear();
    intake.accept({ kind: "blocks-cleared", at: now(), endpoint });
    this.alive(true);
  }

  lost(reason: KvEventsLostReason): void {
    if (!this.#isAlive || this.#stopped) return;
    this.#isAlive = false;
    this.#drop();
    const { intake, endpoint, now, changed } = this.#context;
    intake.accept({ kind: "kv-events-lost", at: now(), endpoint, reason });
    changed(reason);
  }

  /** Nothing reaches the router from here any more. */
  stop(): void {
    this.#stopped = true;
  }

  #stored(event: BlockStored): number {
    const { translator } = this.#context;
    if (event.medium === "storage") return this.#ignore();
    if (!translator.fits(event.blockTokens)) {
      this.lost("block-size");
      return 0;
    }
    if (translator.isFull) this.missed();
    const inHost = event.medium === "host";
    const { hashes, unknownBlocks } = inHost ? translator.storedInHost(event) : translator.stored(event);
    this.counts[inHost ? "storedInHost" : "stored"] += hashes.length / 2;
    this.counts.untranslated += unknownBlocks;
    this.#turnTo(inHost, this.#removals.length > 0 || this.#unknownRemoved > 0);
    if (hashes.length > 0) this.#stores.push(hashes);
    return event.tokens.length;
  }

  #removed({ hashes, medium }: BlockRemoved): number {
    if (medium === "storage") return this.#ignore();
    const { translator } = this.#context;
    const inHost = medium === "host";
    const removed = inHost ? translator.removedFromHost(hashes) : translator.removed(hashes);
    this.counts[inHost ? "removedFromHost" : "removed"] += removed.hashes.length / 2;
    this.counts.unknownRemoved += removed.unknownBlocks;
    this.#turnTo(inHost, this.#stores.length > 0);
    if (removed.hashes.length > 0) this.#removals.push(removed.hashes);
    if (!inHost) this.#unknownRemoved += removed.unknownBlocks;
    return TOKENS_PER_REMOVAL * hashes.length;
  }

  #ignore(): number {
    this.counts.ignored++;
    return 0;
  }

  /** What comes next is of that memory, and not of the kind of what is there `already`. */
  #turnTo(inHost: boolean, already: boolean): void {
    if (already || inHost !== this.#inHost) this.#flush();
    this.#inHost = inHost;
  }

  #cleared(): void {
    const { intake, endpoint, translator, now } = this.#context;
    this.#flush();
    this.counts.cleared++;
    translator.clear();
    intake.accept({ kind: "blocks-cleared", at: now(), endpoint, inOrder: true });
  }

  /** Stores, or removals, of which several came in a row are one input. */
  #flush(): void {
    const { intake, endpoint, now } = this.#context;
    const medium = this.#inHost && ({ medium: "host" } as const);
    if (this.#stores.length > 0) {
      const starts = startsOf(this.#stores);
      intake.accept({
        kind: "blocks-stored",
        at: now(),
        endpoint,
        hashes: joined(this.#stores),
        ...(starts.length > 0 && !this.#inHost && { starts }),
        ...medium,
      });
    }
    if (this.#removals.length > 0 || this.#unknownRemoved > 0) {
      intake.accept({
        kind: "blocks-removed",
        at: now(),
        endpoint,
        hashes: joined(this.#removals),
        ...(this.#unknownRemoved > 0 && { unknownBlocks: this.#unknownRemoved }),
        ...medium,
      });
    }
    this.#drop();
  }

  #drop(): void {
    this.#stores = [];
    this.#removals = [];
    this.#unknownRemoved = 0;
  }
}

/** Blocks with which another chain begins. */
function startsOf(stores: readonly Int32Array[]): number[] {
  const starts: number[] = [];
  let blocks = 0;
  for (const hashes of stores) {
    if (blocks > 0) starts.push(blocks);
    blocks += hashes.length / 2;
  }
  return starts;
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const whole = new Int32Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
