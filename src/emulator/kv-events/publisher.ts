import { encode } from "@msgpack/msgpack";
import type { Publisher, Router } from "zeromq";
import type { Random } from "#core/base/random.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { EmulatedSequence } from "../generation/sequence.ts";

/** As vLLM's --kv-events-config, on ports of the server's host. */
export interface KvEventOptions {
  /** 0 for any free port; both. */
  readonly port: number;
  /** Undefined for no replay socket, which is vLLM's default. */
  readonly replayPort: number | undefined;
  readonly topic: string;
  /** Messages that are kept for replays. */
  readonly bufferSteps: number;
}

/** What goes wrong on purpose. */
export interface PublisherFaults {
  /** Share of messages that are kept and numbered and never sent. */
  dropShare: number;
  /** Nothing is sent, and what would have been is kept and numbered. */
  paused: boolean;
  /** Replays are not answered. */
  replayRefused: boolean;
}

interface Kept {
  readonly number: number;
  readonly payload: Uint8Array;
}

type KvEventSink = Pick<EngineSink, "blocksStored" | "blockRemoved" | "tierBlockStored" | "tierBlockRemoved">;

const END = Buffer.alloc(8, 0xff);
const MICROS_PER_SECOND = 1e6;
const MILLIS_PER_SECOND = 1e3;

/**
 * vLLM's publisher of KV events: one message per step that changed the cache, numbered from 0, and a socket that gives
 * the latest ones again.
 */
export class KvPublisher {
  readonly faults: PublisherFaults = { dropShare: 0, paused: false, replayRefused: false };
  readonly #options: KvEventOptions;
  readonly #blockTokens: number;
  readonly #host: string;
  readonly #drops: Random;
  /** Both once they listen. */
  #publisher: Publisher | undefined;
  #router: Router | undefined;
  #events: object[] = [];
  #kept: Kept[] = [];
  #next = 0;
  #sending: Promise<void> = Promise.resolve();
  /** Of the sockets, once they listen. */
  address: { readonly publisher: string; readonly replay: string | undefined } = { publisher: "", replay: undefined };

  constructor(options: KvEventOptions, blockTokens: number, host: string, drops: Random) {
    this.#options = options;
    this.#blockTokens = blockTokens;
    this.#host = host.includes(":") ? `[${host}]` : host;
    this.#drops = drops;
  }

  async listen(): Promise<void> {
    const { port, replayPort } = this.#options;
    const zeromq = await import("zeromq");
    this.#publisher = new zeromq.Publisher({ linger: 0, sendHighWaterMark: 100_000 });
    this.#router = replayPort === undefined ? undefined : new zeromq.Router({ linger: 0 });
    await this.#publisher.bind(`tcp://${this.#host}:${port}`);
    if (this.#router !== undefined) {
      await this.#router.bind(`tcp://${this.#host}:${replayPort}`);
      void this.#answer(this.#router);
    }
    this.address = { publisher: this.#publisher.lastEndpoint ?? "", replay: this.#router?.lastEndpoint ?? undefined };
  }

  /** What GET /kv_event_sources shows of it: an address with a wildcard is one that listens. */
  source(): object {
    const { topic, bufferSteps } = this.#options;
    const wildcard = (address: string | undefined) => address?.replace(/^tcp:\/\/.*:/, "tcp://*:") ?? null;
    return {
      enable_kv_cache_events: true,
      publisher: "zmq",
      endpoint: wildcard(this.address.publisher),
      replay_endpoint: wildcard(this.address.replay),
      buffer_steps: bufferSteps,
      hwm: 100_000,
      max_queue_size: 100_000,
      topic,
    };
  }

  /** Full blocks [firstBlock, firstBlock + count) of the sequence can be hit. */
  stored(
    { hashes, prompt, plan, adapter, cacheSalt: salt }: EmulatedSequence,
    firstBlock: number,
    count: number,
  ): void {
    const blocks = Array.from({ length: count }, (_, i) => firstBlock + i);
    const tokens: number[] = [];
    const end = (firstBlock + count) * this.#blockTokens;
    for (let i = firstBlock * this.#blockTokens; i < end; i++)
      tokens.push((i < prompt.length ? prompt[i] : plan.tokens[i - prompt.length])!);
    const extra = (block: number): string[] | null => {
      const keys = [...(adapter === "" ? [] : [adapter]), ...(block === 0 && salt !== "" ? [salt] : [])];
      return keys.length === 0 ? null : keys;
    };
    this.#events.push({
      type: "BlockStored",
      block_hashes: blocks.map((block) => hashOf(hashes[2 * block]!, hashes[2 * block + 1]!)),
      parent_block_hash: firstBlock === 0 ? null : hashOf(hashes[2 * firstBlock - 2]!, hashes[2 * firstBlock - 1]!),
      token_ids: tokens,
      block_size: this.#blockTokens,
      lora_id: adapter === "" ? null : 1,
      medium: "GPU",
      lora_name: adapter === "" ? null : adapter,
      extra_keys: blocks.map(extra),
      group_idx: 0,
      kv_cache_spec_kind: "full_attention",
    });
  }

  /** What an engine is to report to. */
  sink(sequenceOf: (id: string) => EmulatedSequence | undefined): KvEventSink {
    return {
      blocksStored: (_at, { id }, firstBlock, count) => {
        const sequence = sequenceOf(id);
        if (sequence !== undefined) this.stored(sequence, firstBlock, count);
      },
      blockRemoved: (_at, low, high) => this.removed(low, high, "GPU"),
      tierBlockStored: (_at, low, high) => this.offloaded(low, high),
      tierBlockRemoved: (_at, low, high) => this.removed(low, high, "CPU"),
    };
  }

  removed(low: number, high: number, medium: "GPU" | "CPU"): void {
    this.#events.push({ type: "BlockRemoved", block_hashes: [hashOf(low, high)], medium, group_idx: 0 });
  }

  /** A block was copied to the host's memory; vLLM's OffloadingConnector names it by its hash alone. */
  offloaded(low: number, high: number): void {
    this.#events.push({
      type: "BlockStored",
      block_hashes: [hashOf(low, high)],
      parent_block_hash: null,
      token_ids: [],
      block_size: 0,
      lora_id: null,
      medium: "CPU",
      lora_name: null,
      group_idx: 0,
    });
  }

  /** As in vLLM it is sent with the next step that changes the cache, however late that is. */
  cleared(): void {
    this.#events.push({ type: "AllBlocksCleared" });
  }

  /** A step is over: what it did goes out as one message. */
  flush(): void {
    if (!this.#events.some((event) => "block_hashes" in event)) return;
    // Seconds are a double even where they are whole, as Python's are.
    const seconds = Math.floor(Date.now() * MILLIS_PER_SECOND) / MICROS_PER_SECOND + 1e-7;
    const payload = encode([seconds, this.#events, 0], { useBigInt64: true });
    this.#events = [];
    const number = this.#next++;
    this.#kept.push({ number, payload });
    if (this.#kept.length > 2 * this.#options.bufferSteps) this.#kept = this.#kept.slice(-this.#options.bufferSteps);
    const { dropShare, paused } = this.faults;
    if (paused || (dropShare > 0 && this.#drops.next() < dropShare)) return;
    const frames = [this.#options.topic, numbered(number), payload];
    this.#sending = this.#sending.then(() => this.#publisher?.send(frames)).catch(() => {});
  }

  close(): void {
    this.#publisher?.close();
    this.#router?.close();
  }

  async #answer(router: Router): Promise<void> {
    try {
      for await (const [peer, , from] of router) {
        if (this.faults.replayRefused || peer === undefined || from?.length !== 8) continue;
        const first = Number(from.readBigUInt64BE());
        for (const { number, payload } of this.#kept.slice(-this.#options.bufferSteps)) {
          if (number >= first) await router.send([peer, "", this.#options.topic, numbered(number), payload]);
        }
        await router.send([peer, "", "", END, ""]);
      }
    } catch {
      // It was closed.
    }
  }
}

function hashOf(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

function numbered(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}
