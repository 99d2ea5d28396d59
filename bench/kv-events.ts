/**
 * What following engines' KV events costs: reading a message, putting its blocks into our hashes, and the router's index;
 * memory per block; and 100 engines that publish 50 messages a second each, over real sockets.
 *
 *     npx node bench/kv-events.ts [--seconds N]
 */
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { encode } from "@msgpack/msgpack";
import Table from "cli-table3";
import { Publisher } from "zeromq";
import { loadProfile } from "#config/profile-file.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { randomFor } from "#core/random.ts";
import { Router } from "#core/router.ts";
import { nowMicros } from "#live/clock.ts";
import { BlockTranslator } from "#live/kv-events/block-translator.ts";
import { decodeBatch } from "#live/kv-events/decode-batch.ts";
import { atOnce } from "#live/loop-turn.ts";
import { EndpointFeed } from "#live/kv-events/endpoint-feed.ts";
import { PublisherLink } from "#live/kv-events/publisher-link.ts";
import { RouterTap } from "#live/router-tap.ts";

const BLOCK_TOKENS = 16;
const ENGINES = 100;
const MESSAGES_PER_SECOND = 50;
const CAPACITY_BLOCKS = 31_250;
const ROOT = new Int32Array(8).fill(7);

/** A publisher's messages: each stores blocks behind those before, and once it is full removes as many. */
class Messages {
  readonly #random = randomFor(5, 0);
  readonly #held: bigint[] = [];
  #parent: bigint | null = null;
  #seconds = 1_000.5;

  /** `stores` events of `blocks` blocks each. */
  next(stores: number, blocks: number): Uint8Array {
    const events: object[] = [];
    for (let i = 0; i < stores; i++) {
      const hashes = Array.from({ length: blocks }, () => this.#hash());
      for (; this.#held.length + blocks > CAPACITY_BLOCKS;)
        events.push({ type: "BlockRemoved", block_hashes: [this.#held.shift()], medium: "GPU", group_idx: 0 });
      events.push({
        type: "BlockStored",
        block_hashes: hashes,
        parent_block_hash: this.#random.next() < 0.1 ? null : this.#parent,
        token_ids: Array.from({ length: blocks * BLOCK_TOKENS }, () => this.#random.below(128_000)),
        block_size: BLOCK_TOKENS,
        lora_id: null,
        medium: "GPU",
        lora_name: null,
        extra_keys: hashes.map(() => null),
        group_idx: 0,
        kv_cache_spec_kind: "full_attention",
      });
      this.#held.push(...hashes);
      this.#parent = hashes.at(-1)!;
    }
    return encode([(this.#seconds += 0.02), events, 0], { useBigInt64: true });
  }

  #hash(): bigint {
    return (BigInt(this.#random.below(2 ** 32)) << 32n) | BigInt(this.#random.below(2 ** 32));
  }
}

function newTap(): RouterTap {
  const router = new Router({
    seed: 1,
    profiles: { gnomon: loadProfile("gnomon").spec },
    defaultProfile: "gnomon",
    index: new DualIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 5_000_000,
  });
  return new RouterTap(router);
}

function feedOf(tap: RouterTap, endpoint: string): { feed: EndpointFeed; translator: BlockTranslator } {
  const kvCapacityTokens = CAPACITY_BLOCKS * BLOCK_TOKENS;
  const joined = { id: endpoint, models: ["m"], labels: {}, kvCapacityTokens, concurrencyMax: 256 };
  tap.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint: joined });
  const hasher = blake3Hasher(BLOCK_TOKENS);
  const translator = new BlockTranslator({ hasher, rootOf: () => ROOT, modelOf: () => "m", blocksMax: 1e6 });
  return { feed: new EndpointFeed({ endpoint, tap, translator, now: nowMicros, changed: () => {} }), translator };
}

async function costs(): Promise<void> {
  const table = new Table({
    head: ["message", "bytes", "decode us", "hash us", "all us", "us per block", "table bytes per block"],
  });
  for (const [stores, blocks, rounds] of [
    [3, 1, 20_000],
    [1, 32, 4_000],
    [1, 512, 400],
  ] as const) {
    const messages = new Messages();
    const payloads = Array.from({ length: rounds }, () => messages.next(stores, blocks));
    const tap = newTap();
    const { feed, translator } = feedOf(tap, "a");
    feed.alive(true);
    const whole: number[] = [];
    for (const payload of payloads) {
      const started = performance.now();
      await feed.message(payload);
      whole.push(1_000 * (performance.now() - started));
    }
    const decoded = payloads.map((payload) => timed(() => atOnce(decodeBatch(payload))));
    const other = new BlockTranslator({
      hasher: blake3Hasher(BLOCK_TOKENS),
      rootOf: () => ROOT,
      modelOf: () => "m",
      blocksMax: 1e6,
    });
    const batches = payloads
      .slice(0, Math.floor(CAPACITY_BLOCKS / (stores * blocks)))
      .map((payload) => atOnce(decodeBatch(payload)).events);
    const hashed = batches.map((events) =>
      timed(() => {
        for (const event of events) if (event.kind === "stored") other.stored(event);
      }),
    );
    const mean = middle(whole);
    table.push([
      `${stores} x ${blocks} blocks stored`,
      payloads[0]!.length,
      middle(decoded).toFixed(1),
      middle(hashed).toFixed(1),
      mean.toFixed(1),
      (mean / stores / blocks).toFixed(2),
      (translator.bytes / translator.size).toFixed(0),
    ]);
  }
  console.log(table.toString());
}

function timed(work: () => unknown): number {
  const started = performance.now();
  work();
  return 1_000 * (performance.now() - started);
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Every engine's step brings three blocks; every tenth one a prompt of 32. */
async function overSockets(seconds: number): Promise<void> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { publishers: ENGINES } });
  const addresses = await new Promise<string[]>((resolve) => worker.once("message", resolve));
  const tap = newTap();
  const links = addresses.map((publisher, i) => {
    const { feed } = feedOf(tap, `engine-${i}`);
    return new PublisherLink({ publisher, replay: undefined, binds: false, topic: "" }, feed);
  });
  const running = links.map((link) => link.run());
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const [before, received] = [
    performance.eventLoopUtilization(),
    links.reduce((sum, { counts }) => sum + counts.messages, 0),
  ];
  await new Promise((resolve) => setTimeout(resolve, 1_000 * seconds));
  const busy = performance.eventLoopUtilization(before).utilization;
  delay.disable();
  const messages = links.reduce((sum, { counts }) => sum + counts.messages, 0) - received;
  const missed = links.reduce((sum, { counts }) => sum + counts.missed, 0);
  console.log({
    engines: ENGINES,
    messagesPerSecond: Math.round(messages / seconds),
    missed,
    eventLoopBusyShare: Number(busy.toFixed(3)),
    microsPerMessage: Math.round((1e6 * busy * seconds) / messages),
    eventLoopDelayMillis: { p50: delay.percentile(50) / 1e6, p99: delay.percentile(99) / 1e6 },
  });
  for (const link of links) link.stop();
  await Promise.all(running);
  await worker.terminate();
}

async function publish(count: number): Promise<void> {
  const publishers = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = new Publisher({ linger: 0 });
      await socket.bind("tcp://127.0.0.1:0");
      return { socket, messages: new Messages(), number: 0n };
    }),
  );
  parentPort!.postMessage(publishers.map(({ socket }) => socket.lastEndpoint));
  const ready = Array.from({ length: 40 }, (_, i) =>
    publishers[0]!.messages.next(i % 10 === 0 ? 1 : 3, i % 10 === 0 ? 32 : 1),
  );
  for (let tick = 0; ; tick++) {
    const until = performance.now() + 1_000 / MESSAGES_PER_SECOND;
    for (const publisher of publishers) {
      const number = Buffer.alloc(8);
      number.writeBigUInt64BE(publisher.number++);
      const payload = Buffer.from(ready[tick % ready.length]!);
      payload.writeDoubleBE(1_000 + tick / MESSAGES_PER_SECOND + 1e-4, 2);
      await publisher.socket.send(["", number, payload]);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, until - performance.now())));
  }
}

if (isMainThread) {
  const { values } = parseArgs({ options: { seconds: { type: "string", default: "10" } } });
  await costs();
  await overSockets(Number(values.seconds));
} else await publish((workerData as { publishers: number }).publishers);
