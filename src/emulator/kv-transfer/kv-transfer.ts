import { MICROS_PER_SECOND, MILLIS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { Random } from "#core/base/random.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { JsonObject } from "../http/body.ts";
import { HeldBlocks } from "./held-blocks.ts";
import { RemoteFetch } from "./remote-fetch.ts";
import { type DecodeRequest, type TransferSource, transferParameters } from "./transfer-request.ts";

/** Blocks that go from one emulated engine to another as with vLLM's NIXL connector. */
export interface KvTransferOptions {
  /** Before the first byte, in engine time. */
  readonly latencyMicros: Micros;
  readonly bytesPerSecond: number;
  /** What is done about blocks that do not come (kv_load_failure_policy). */
  readonly failurePolicy: "fail" | "recompute";
  /** How long blocks are held for nobody (kv_lease_duration). */
  readonly leaseSeconds: number;
}

export const KV_TRANSFER_DEFAULTS: KvTransferOptions = {
  latencyMicros: 50,
  bytesPerSecond: 25e9,
  failurePolicy: "fail",
  leaseSeconds: 30,
};

/** Transfers since the start, and blocks held now for so many requests. */
export interface TransferCounts {
  readonly holding: number;
  /** Holds that were given back by whoever they were for, and that nobody came for. */
  readonly taken: number;
  readonly expired: number;
  /** Prompts whose blocks came here, and that came not. */
  readonly fetched: number;
  readonly failed: number;
}

/** A request whose prompt was computed for another engine. */
interface Prefilled {
  readonly id: string;
  handedOver: JsonObject | undefined;
}

/** Both ends of transfers: what this engine holds for others, and what it fetches from them. */
export class KvTransfer {
  readonly failurePolicy: KvTransferOptions["failurePolicy"];
  readonly held: HeldBlocks;
  /** Part of the transfers to this engine that fail, in [0, 1]. */
  failShare = 0;
  readonly #options: KvTransferOptions;
  readonly #bytesPerToken: number;
  readonly #blockTokens: number;
  readonly #draws: Random;
  readonly #fetches = new Set<RemoteFetch>();
  readonly #renewal: NodeJS.Timeout;
  #source: TransferSource;
  #fetched = 0;
  #failed = 0;

  constructor(
    options: KvTransferOptions,
    engine: { readonly kvBytesPerToken: number; readonly blockTokens: number },
    engineId: string,
    draws: Random,
    release: (hold: Hold) => void,
  ) {
    this.#options = options;
    this.failurePolicy = options.failurePolicy;
    this.#bytesPerToken = engine.kvBytesPerToken;
    this.#blockTokens = engine.blockTokens;
    this.#draws = draws;
    this.#source = { engineId, host: "", port: 0 };
    this.held = new HeldBlocks(options.leaseSeconds, release);
    const everyMs = (options.leaseSeconds * MILLIS_PER_SECOND) / RENEWALS_PER_LEASE;
    this.#renewal = setInterval(() => this.#renew(), everyMs);
    this.#renewal.unref();
  }

  get engineId(): string {
    return this.#source.engineId;
  }

  get counts(): TransferCounts {
    const { size: holding, taken, expired } = this.held;
    return { holding, taken, expired, fetched: this.#fetched, failed: this.#failed };
  }

  /** Where others reach this engine. */
  listensAt(host: string, port: number): void {
    this.#source = { ...this.#source, host, port };
  }

  /** A prefill request ended and its blocks are held: its answer has what the decode request needs. */
  hold(sequence: Prefilled, hold: Hold): void {
    const requestId = `${this.engineId}-${sequence.id}`;
    this.held.add(requestId, hold);
    sequence.handedOver = transferParameters(this.#source, requestId, hold.tokens, this.#blockTokens);
  }

  fetchOf(request: DecodeRequest): RemoteFetch {
    const fails = this.failShare > 0 && this.#draws.next() < this.failShare;
    const fetch = new RemoteFetch(request, this.#microsOf, fails, (fetched) => {
      this.#fetches.delete(fetch);
      if (fetched) this.#fetched++;
    });
    this.#fetches.add(fetch);
    return fetch;
  }

  /** Blocks are not where they were to be. */
  missed(fetch: RemoteFetch): void {
    this.#failed++;
    fetch.end();
  }

  stop(): void {
    clearInterval(this.#renewal);
    this.held.stop();
    this.#fetches.clear();
  }

  /** latency + bytes / bandwidth, of whole blocks. */
  readonly #microsOf = (tokens: number): Micros => {
    const { latencyMicros, bytesPerSecond } = this.#options;
    const bytes = Math.ceil(tokens / this.#blockTokens) * this.#blockTokens * this.#bytesPerToken;
    return Math.round(latencyMicros + (bytes * MICROS_PER_SECOND) / bytesPerSecond);
  };

  #renew(): void {
    for (const fetch of this.#fetches) fetch.renew();
  }
}

/** As vLLM's heartbeats. */
const RENEWALS_PER_LEASE = 6;
