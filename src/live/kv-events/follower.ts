import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { KvEventsLostReason } from "#core/endpoint/knowledge.ts";
import type { BlockHasher, ChainValue } from "#core/prompt/block-hasher.ts";
import type { Micros } from "#core/base/units.ts";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { Intake } from "../base/intake.ts";
import type { CacheScope } from "../tokenizer/text/tokenizer.ts";
import { BlockTranslator } from "./block-translator.ts";
import { EndpointFeed, type FeedCounts } from "./endpoint-feed.ts";
import type { EventAddress } from "./event-address.ts";
import type { LinkCounts, LinkTimes } from "./link-listener.ts";
import { PublisherLink } from "./publisher-link.ts";

/** Blocks of one engine that may be known, where its room is not; and as a multiple of that, since removals may be lost. */
const BLOCKS_MAX = 4_194_304;

export interface FollowerContext {
  readonly intake: Intake;
  readonly now: () => Micros;
  readonly report: (event: FaultEvent) => void;
  readonly hasher: BlockHasher;
  readonly namesBlocks: boolean;
  readonly rootOf: (scope: CacheScope) => ChainValue;
  readonly times: LinkTimes;
  /** The publisher could not be reached: it may be elsewhere by now. */
  readonly unreachable: (endpoint: EndpointId) => void;
}

/** How one endpoint's events stand. */
export interface FollowerRow {
  readonly endpoint: EndpointId;
  readonly publisher: string;
  readonly replay: string | undefined;
  readonly state: "connecting" | "alive" | KvEventsLostReason;
  readonly link: Readonly<LinkCounts>;
  readonly feed: Readonly<FeedCounts>;
  /** Blocks of the engine that can be named, and the memory which that takes. */
  readonly knownBlocks: number;
  readonly tableBytes: number;
}

/** One endpoint's publisher, from its address to the router. */
export class Follower {
  readonly address: EventAddress;
  readonly #entry: EndpointEntry;
  readonly #translator: BlockTranslator;
  readonly #feed: EndpointFeed;
  readonly #link: PublisherLink;
  #state: FollowerRow["state"] = "connecting";
  #running: Promise<void> | undefined;

  constructor(entry: EndpointEntry, address: EventAddress, context: FollowerContext) {
    const { intake, now, report, hasher, namesBlocks, rootOf, times, unreachable } = context;
    const { id: endpoint } = entry;
    this.#entry = entry;
    this.address = address;
    this.#translator = new BlockTranslator({
      hasher,
      rootOf,
      modelOf: () => baseNames(entry)[0] ?? "",
      blocksMax: BLOCKS_MAX,
      namesBlocks,
    });
    const changed = (state: "precise" | "late" | KvEventsLostReason): void => {
      this.#state = state === "precise" || state === "late" ? "alive" : state;
      report(faultOf(endpoint, state));
    };
    this.#feed = new EndpointFeed({ endpoint, intake, translator: this.#translator, now, changed });
    this.#link = new PublisherLink(address, this.#feed, times, () => unreachable(endpoint));
  }

  start(): void {
    this.#running = this.#link.run();
  }

  /** The router is to believe this endpoint's events no longer. */
  give(reason: KvEventsLostReason): void {
    this.#feed.lost(reason);
  }

  async stop(): Promise<void> {
    this.#feed.stop();
    this.#link.stop();
    await this.#running;
  }

  row(): FollowerRow {
    const { publisher, replay } = this.address;
    return {
      endpoint: this.#entry.id,
      publisher,
      replay,
      state: this.#state,
      link: this.#link.counts,
      feed: this.#feed.counts,
      knownBlocks: this.#translator.size,
      tableBytes: this.#translator.bytes,
    };
  }
}

/** Names of what is no adapter of another. Prompts by different names of one model have different hashes here. */
export function baseNames({ models }: Pick<EndpointEntry, "models">): string[] {
  return models.filter(({ parent }) => parent === undefined || parent === null).map(({ id }) => id);
}

function faultOf(endpoint: EndpointId, state: "precise" | "late" | KvEventsLostReason): FaultEvent {
  if (state === "precise")
    return {
      kind: "kv-events-alive",
      endpoint,
      detail: "all are known",
      done: "its cache is known, no longer guessed",
    };
  if (state === "late")
    return {
      kind: "kv-events-alive",
      endpoint,
      detail: "those before are not known: it has no replay socket, or kept too few",
      done: "its cache is guessed until what it held is replaced",
    };
  return { kind: "kv-events-lost", endpoint, detail: state, done: "its cache is guessed from what is sent there" };
}
