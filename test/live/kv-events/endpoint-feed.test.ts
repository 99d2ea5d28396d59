import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import type { Input } from "#core/input/input.ts";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { BlockTranslator } from "#live/kv-events/block-translator.ts";
import { EndpointFeed } from "#live/kv-events/endpoint-feed.ts";
import { FleetUnderTest } from "../discovery/fleet-under-test.ts";

const BLOCK_TOKENS = 16;
const ROOT = new Int32Array(8).fill(7);

type Medium = "GPU" | "CPU";

class FeedUnderTest {
  readonly inputs: Input[] = [];
  readonly changes: string[] = [];
  readonly translator: BlockTranslator;
  readonly feed: EndpointFeed;

  constructor(blocksMax = 1_000) {
    const { intake } = new FleetUnderTest();
    const kvCapacityTokens = 1_000_000;
    const endpoint = { id: "e", models: ["m"], labels: {}, kvCapacityTokens, concurrencyMax: 8 };
    intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
    intake.listen({ accepted: (input) => void this.inputs.push(input) });
    const hasher = blake3Hasher(BLOCK_TOKENS);
    this.translator = new BlockTranslator({ hasher, rootOf: () => ROOT, modelOf: () => "m", blocksMax });
    const changed = (state: string) => void this.changes.push(state);
    this.feed = new EndpointFeed({ endpoint: "e", intake, translator: this.translator, now: () => 1, changed });
  }

  async publish(...events: unknown[]): Promise<void> {
    await this.feed.message(encode([1.5, events, 0], { useBigInt64: true }));
  }

  /** Kinds of inputs with how many blocks each has, and where those are. */
  get seen(): string[] {
    return this.inputs.map((input) => {
      if (input.kind !== "blocks-stored" && input.kind !== "blocks-removed") return input.kind;
      return `${input.kind} ${input.hashes.length / 2}${input.medium === "host" ? " in the host" : ""}`;
    });
  }
}

/** A prompt of one block, by its number. */
const stored = (number: number, medium: Medium = "GPU") => ({
  type: "BlockStored",
  block_hashes: [number],
  parent_block_hash: null,
  token_ids: Array.from({ length: BLOCK_TOKENS }, (_, i) => 100 * number + i),
  block_size: BLOCK_TOKENS,
  medium,
});
const removed = (number: number, medium: Medium = "GPU") => ({ type: "BlockRemoved", block_hashes: [number], medium });

test("stores and removals of one message reach the router in their order, those in a row as one input", async () => {
  const { feed, inputs, publish, seen } = bound(new FeedUnderTest());
  feed.alive(true);
  await publish(stored(1), stored(2), removed(1), removed(2), stored(1), removed(1));
  assert.deepEqual(seen(), [
    "kv-events-alive",
    "blocks-stored 2",
    "blocks-removed 2",
    "blocks-stored 1",
    "blocks-removed 1",
  ]);
  const [, both] = inputs;
  assert.deepEqual(both?.kind === "blocks-stored" && both.starts, [1], "where the second prompt begins");
});

test("law: what the router is shown of any events comes to the same blocks as the events one by one", async () => {
  const event = fc.record({
    what: fc.constantFrom("stored", "removed", "cleared"),
    number: fc.nat(5),
    medium: fc.constantFrom<Medium>("GPU", "CPU"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 24 }), async (events) => {
      const written = events.map(({ what, number, medium }) =>
        what === "stored"
          ? stored(number, medium)
          : what === "removed"
            ? removed(number, medium)
            : { type: "AllBlocksCleared" },
      );
      const [together, apart] = [new FeedUnderTest(), new FeedUnderTest()];
      together.feed.alive(true);
      apart.feed.alive(true);
      await together.publish(...written);
      for (const one of written) await apart.publish(one);
      assert.deepEqual(blocksOf(together.inputs), blocksOf(apart.inputs));
      assert.deepEqual(together.feed.counts, apart.feed.counts);
    }),
    { numRuns: 60 },
  );
});

/** Each block that came or went, one by one, in order. */
function blocksOf(inputs: readonly Input[]): string[] {
  return inputs.flatMap((input) => {
    if (input.kind === "blocks-cleared") return ["cleared"];
    if (input.kind !== "blocks-stored" && input.kind !== "blocks-removed") return [];
    const { kind, hashes, medium = "device" } = input;
    return Array.from(
      { length: hashes.length / 2 },
      (_, i) => `${kind} ${medium} ${hashes[2 * i]} ${hashes[2 * i + 1]}`,
    );
  });
}

test("what lies in the host's memory is no part of an input of the device's", async () => {
  const { feed, publish, seen } = bound(new FeedUnderTest());
  feed.alive(true);
  await publish(stored(1), stored(2, "CPU"), stored(3), removed(2, "CPU"), removed(1));
  const kinds = ["blocks-stored 1", "blocks-stored 1 in the host", "blocks-stored 1"];
  assert.deepEqual(seen(), ["kv-events-alive", ...kinds, "blocks-removed 1 in the host", "blocks-removed 1"]);
});

test("where messages were missed, a block that came twice is gone with the first removal", async () => {
  const { feed, publish, seen } = bound(new FeedUnderTest());
  feed.alive(true);
  await publish(stored(1), stored(1));
  await publish(removed(1));
  await publish(removed(1));
  assert.equal(feed.counts.unknownRemoved, 0, "each of its two copies is removed once");
  await publish(stored(1), stored(1));
  feed.missed();
  await publish(removed(1));
  await publish(removed(1));
  assert.equal(feed.counts.unknownRemoved, 1);
  assert.equal(seen().filter((kind) => kind === "kv-events-missed").length, 1);
});

test("an engine of other blocks is guessed from there on, one with more than it can have missed something", async () => {
  const { feed, publish, changes, seen } = bound(new FeedUnderTest());
  feed.alive(true);
  await publish(stored(1), { ...stored(2), block_size: 10, token_ids: Array.from({ length: 10 }, () => 1) }, stored(3));
  assert.deepEqual(changes, ["precise", "block-size"]);
  assert.deepEqual(seen(), ["kv-events-alive", "kv-events-lost"]);
  feed.alive(false);
  assert.deepEqual(changes, ["precise", "block-size", "late"]);
  const full = bound(new FeedUnderTest(2));
  full.feed.alive(true);
  await full.publish(stored(1), stored(2), stored(3));
  assert.ok(full.seen().includes("kv-events-missed"));
});

test("nothing reaches the router before its publisher is there, after it is lost, and once it is stopped", async () => {
  const { feed, publish, seen, inputs } = bound(new FeedUnderTest());
  await publish(stored(1));
  feed.missed();
  feed.lost("disconnected");
  assert.deepEqual(seen(), []);
  feed.alive(true);
  feed.lost("disconnected");
  await publish(stored(1));
  assert.deepEqual(seen(), ["kv-events-alive", "kv-events-lost"]);
  feed.alive(true);
  feed.restarted();
  assert.deepEqual(seen().slice(2), ["kv-events-alive", "blocks-cleared", "kv-events-alive"]);
  feed.stop();
  inputs.length = 0;
  await publish(stored(2));
  for (const late of [
    () => feed.alive(true),
    () => feed.missed(),
    () => feed.restarted(),
    () => feed.lost("undecodable"),
  ])
    late();
  assert.deepEqual(seen(), []);
});

test("events without blocks give the event loop its turn too", async () => {
  const under = new FeedUnderTest();
  under.feed.alive(true);
  let turns = 0;
  let isOver = false;
  const count = (): void => void (isOver || (turns++, setImmediate(count)));
  setImmediate(count);
  await under.publish(...Array.from({ length: 5_000 }, () => ({ type: "AllBlocksCleared" })));
  isOver = true;
  assert.equal(under.feed.counts.cleared, 5_000);
  assert.ok(turns > 15, `${turns} turns`);
});

function bound(under: FeedUnderTest) {
  const { feed, inputs, changes } = under;
  return { feed, inputs, changes, publish: under.publish.bind(under), seen: () => under.seen };
}
