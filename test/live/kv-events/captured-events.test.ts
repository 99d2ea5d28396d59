import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode } from "@msgpack/msgpack";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { BlockTranslator } from "#live/kv-events/block-translator.ts";
import { atOnce } from "#live/base/loop-turn.ts";
import { decodeBatch, KvEventFormatError } from "#live/kv-events/decode-batch.ts";
import type { BlockStored, KvEvent } from "#live/kv-events/kv-event.ts";
import { hasherOf, rootsOf } from "#live/tokenizer/chain-hash.ts";
import { PromptChains } from "#live/tokenizer/prompt-chains.ts";
import { ScopeRoots } from "#live/tokenizer/scope-roots.ts";
import { captured } from "./captured.ts";

const BLOCK_TOKENS = 32;
const ROOTS = new ScopeRoots("secret");
const CHAINS = new PromptChains(blake3Hasher(BLOCK_TOKENS), ROOTS, { memoEntriesMax: 16, memoBytesMax: 65_536 });

function translator(blockTokens = BLOCK_TOKENS, model = "tiny"): BlockTranslator {
  const rootOf = ROOTS.root.bind(ROOTS);
  return new BlockTranslator({ hasher: blake3Hasher(blockTokens), rootOf, modelOf: () => model, blocksMax: 100 });
}

/** The blocks of a prompt of the gateway's own. */
function promptHashes(tokens: readonly number[], scope = { model: "tiny", salt: "" }): number[] {
  const chain = CHAINS.encodeWords(scope, Int32Array.from(tokens));
  assert.ok(!(chain instanceof Promise));
  return [...chain.hashes];
}

function eventsOf(name: string): KvEvent[] {
  return captured(name).flatMap(({ payload }) => atOnce(decodeBatch(payload)).events);
}

function storedOf(events: readonly KvEvent[]): BlockStored[] {
  return events.filter((event) => event.kind === "stored");
}

test("blocks of a captured publisher become those of the gateway's own prompts, whatever the engine's hashes are", () => {
  for (const name of ["reset_int", "bytes"]) {
    const [first, branch] = storedOf(eventsOf(name));
    assert.ok(first !== undefined && branch !== undefined);
    const own = translator();
    assert.deepEqual([...own.stored(first).hashes], promptHashes(first.tokens), name);
    // The second prompt shares two blocks and goes on with another one.
    const prompt = [...first.tokens.slice(0, 2 * BLOCK_TOKENS), ...branch.tokens];
    assert.deepEqual([...own.stored(branch).hashes], promptHashes(prompt).slice(4), name);
    assert.equal(own.untranslated, 0, name);
  }
});

/** Captures of engines whose way of hashing is made here, with their seeds. */
const VLLM_WAYS = [
  ["reset_int", "vllm-sha256", "0"],
  ["bytes", "vllm-sha256", undefined],
  ["evict_int", "vllm-sha256-cbor", "0"],
] as const;

for (const [name, blockHash, seed] of VLLM_WAYS) {
  test(`${name}: prompts hashed as ${blockHash} have the engine's own names, so that events need no tokens`, () => {
    const roots = rootsOf(blockHash, "secret", { seed, models: ["tiny"] });
    const common = { rootOf: roots.root.bind(roots), modelOf: () => "tiny", blocksMax: 1_000 };
    const hasher = hasherOf(blockHash)(BLOCK_TOKENS);
    const [own, byName] = [
      new BlockTranslator({ ...common, hasher }),
      new BlockTranslator({ ...common, hasher, namesBlocks: true }),
    ];
    let blocks = 0;
    for (const event of eventsOf(name)) {
      if (event.kind === "cleared") {
        own.clear();
        byName.clear();
      } else if (event.kind === "removed") assert.deepEqual(byName.removed(event.hashes), own.removed(event.hashes));
      else if (event.extraKeys.every((keys) => keys === undefined)) {
        const { hashes } = own.stored(event);
        assert.deepEqual(
          [...hashes],
          event.hashes.flatMap(({ low, high }) => [low, high]),
        );
        assert.deepEqual(byName.stored({ ...event, tokens: [], blockTokens: 0 }), { hashes, unknownBlocks: 0 });
        blocks += event.hashes.length;
      }
    }
    assert.ok(blocks > 3, String(blocks));
    assert.deepEqual([own.untranslated, byName.untranslated], [0, 0]);
  });
}

test("a prompt with a salt, or of a model that is not named, keeps hashes of the gateway's own", () => {
  const roots = rootsOf("vllm-sha256", "secret", { seed: "0", models: ["tiny"] });
  const engines = roots.root({ model: "tiny", salt: "" });
  assert.notDeepEqual(roots.root({ model: "tiny", salt: "tenant-a" }), engines);
  assert.notDeepEqual(roots.root({ model: "adapter-a", salt: "" }), engines);
  assert.deepEqual(roots.root({ model: "adapter-a", salt: "" }), ROOTS.root({ model: "adapter-a", salt: "" }));
});

test("adapters and cache salts are scopes of their own", () => {
  const salted = storedOf(eventsOf("bytes")).at(-1)!;
  assert.deepEqual(salted.extraKeys[0], ["tenant-a"]);
  assert.deepEqual(
    [...translator().stored(salted).hashes],
    promptHashes(salted.tokens, { model: "tiny", salt: "tenant-a" }),
  );
  const [adapted, base] = storedOf(eventsOf("lora_bytes"));
  const own = translator();
  assert.deepEqual([...own.stored(adapted!).hashes], promptHashes(adapted!.tokens, { model: "adapter-a", salt: "" }));
  assert.deepEqual([...own.stored(base!).hashes], promptHashes(base!.tokens));
});

test("what a captured engine overwrites is what it stored, in its order, and nothing is left that it has no room for", () => {
  const own = translator();
  const held = new Map<string, number>();
  let removed = 0;
  for (const event of eventsOf("evict_int")) {
    if (event.kind === "cleared") own.clear();
    else if (event.kind === "stored")
      for (const key of keysOf(own.stored(event).hashes)) held.set(key, (held.get(key) ?? 0) + 1);
    else {
      const { hashes, unknownBlocks } = own.removed(event.hashes);
      assert.equal(unknownBlocks, 0);
      for (const key of keysOf(hashes)) {
        removed++;
        const copies = held.get(key) ?? 0;
        assert.ok(copies > 0, "it was stored before");
        if (copies === 1) held.delete(key);
        else held.set(key, copies - 1);
      }
    }
  }
  assert.ok(removed > 10);
  assert.ok(held.size <= 48 && own.size === held.size);
});

test("both ranks of one engine publish the same prompt with the same hashes, each by itself", () => {
  const [first, second] = captured("ranks_int").map(({ payload }) => atOnce(decodeBatch(payload)).events);
  assert.deepEqual(first, second);
});

test("an engine's block of several of ours becomes all of them, and goes as one", () => {
  const [first] = storedOf(eventsOf("reset_int"));
  const own = translator(16);
  const { hashes } = own.stored(first!);
  assert.equal(hashes.length, 2 * 2 * 3);
  assert.deepEqual([...own.removed([first!.hashes[1]!]).hashes], [...hashes.subarray(4, 8)]);
  assert.ok(!translator(24).fits(32));
});

test("blocks without a known parent are counted, and so are their removals; copies go one by one", () => {
  const [first, branch] = storedOf(eventsOf("reset_int"));
  const own = translator();
  assert.deepEqual(own.stored(branch!), { hashes: new Int32Array(0), unknownBlocks: 1 });
  assert.equal(own.removed(branch!.hashes).unknownBlocks, 1);
  own.stored(first!);
  own.stored({ ...first!, hashes: first!.hashes.slice(0, 1), tokens: first!.tokens.slice(0, BLOCK_TOKENS) });
  assert.deepEqual([own.removed(first!.hashes.slice(0, 1)).unknownBlocks, own.size], [0, 3]);
  assert.deepEqual([own.removed(first!.hashes.slice(0, 1)).unknownBlocks, own.size], [0, 2]);
  own.missed();
  assert.deepEqual([own.removed(first!.hashes.slice(1)).unknownBlocks, own.size], [0, 0]);
});

test("arrays as older engines send them, other types and fields that are not known are read or passed over", () => {
  const tokens = Array.from({ length: 16 }, (_, i) => i);
  const batch = [
    1.5,
    [
      ["BlockStored", [-5, 7n], null, [...tokens, ...tokens], 16, null, "GPU"],
      ["BlockRemoved", [9], "CPU_PINNED"],
      ["AllBlocksCleared"],
      { type: "BlockMoved", block_hashes: [1] },
      { type: "BlockStored", block_hashes: [3], token_ids: tokens, block_size: 16, group_idx: 1, novelty: {} },
      {
        type: "BlockStored",
        block_hashes: [4],
        token_ids: tokens,
        block_size: 16,
        kv_cache_spec_kind: "sliding_window",
      },
    ],
  ];
  const { seconds, events, ignored } = atOnce(decodeBatch(encode(batch, { useBigInt64: true })));
  assert.deepEqual([seconds, ignored, events.map((event) => event.kind)], [1.5, 3, ["stored", "removed", "cleared"]]);
  const [stored, removed] = events;
  assert.ok(stored?.kind === "stored" && removed?.kind === "removed");
  assert.deepEqual(stored.hashes, [
    { low: -5, high: -1 },
    { low: 7, high: 0 },
  ]);
  assert.deepEqual([stored.medium, removed.medium], ["device", "host"]);
});

test("what is no batch is refused with the place and what was expected", () => {
  const stored = { type: "BlockStored", block_hashes: [1], token_ids: [1, 2], block_size: 2 };
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [{}, /^batch: expected \[seconds, events/],
    [[1, [7]], /^events\[0\]: expected an event with a type/],
    [[1, [{ ...stored, block_hashes: ["a"] }]], /^events\[0\]\.block_hashes\[0\]: expected an integer or a digest/],
    [[1, [{ ...stored, token_ids: "12" }]], /^events\[0\]\.token_ids: expected token ids, got 12/],
    [[1, [{ ...stored, token_ids: [1, 1.5] }]], /^events\[0\]\.token_ids: expected token ids, got a list/],
    [[1, [{ ...stored, token_ids: [1, "2"] }]], /^events\[0\]\.token_ids: expected token ids, got a list/],
    [[1, [{ ...stored, token_ids: [1] }]], /^events\[0\]\.token_ids: expected 2 of them, got 1/],
    [[1, [{ ...stored, block_size: 0 }]], /^events\[0\]\.block_size/],
    [[1, [{ ...stored, medium: 3 }]], /^events\[0\]\.medium/],
    [[1, [{ ...stored, extra_keys: [null, null] }]], /^events\[0\]\.extra_keys/],
  ];
  for (const [batch, message] of wrong) {
    assert.throws(
      () => atOnce(decodeBatch(encode(batch))),
      (error) => error instanceof KvEventFormatError && message.test(error.message),
    );
  }
  const [first] = captured("reset_int");
  for (let length = 0; length < first!.payload.length; length += 7)
    assert.throws(() => atOnce(decodeBatch(first!.payload.subarray(0, length))), KvEventFormatError);
});

function keysOf(hashes: Int32Array): string[] {
  return Array.from({ length: hashes.length / 2 }, (_, i) => `${hashes[2 * i]},${hashes[2 * i + 1]}`);
}

test("blocks in the host's memory are known by the names that the device gave them, or by their tokens", () => {
  const [first] = storedOf(eventsOf("bytes"));
  assert.ok(first !== undefined && first.hashes.length > 1);
  const ours = promptHashes(first.tokens);
  const own = translator();
  own.stored(first);
  const inHost = { ...first, parent: undefined, tokens: [], blockTokens: 0, medium: "host" as const };
  const [head, ...rest] = first.hashes;
  // vLLM's OffloadingConnector names each block by its hash alone.
  assert.deepEqual([...own.storedInHost({ ...inHost, hashes: [head!] }).hashes], ours.slice(0, 2));
  own.removed(first.hashes);
  assert.equal(own.size, 1, "what the host's memory has keeps its name");
  assert.deepEqual(own.storedInHost({ ...inHost, hashes: rest }).unknownBlocks, rest.length);
  // It may be told to describe them.
  assert.deepEqual([...own.storedInHost({ ...first, medium: "host" }).hashes], ours);
  assert.deepEqual([...own.removedFromHost([head!]).hashes], ours.slice(0, 2));
  assert.deepEqual([...own.removedFromHost(first.hashes).hashes], ours);
  assert.equal(own.size, 0);
});

test("a block that is named without tokens is read, whatever size it states", () => {
  const event = { type: "BlockStored", block_hashes: [7], parent_block_hash: null, token_ids: [], block_size: 0 };
  const media = ["CPU", "GPU", "STORAGE", null].map((medium) => ({ ...event, medium, lora_id: null, lora_name: null }));
  const { events } = atOnce(decodeBatch(encode([1.5, media, 0])));
  assert.deepEqual(
    storedOf(events).map(({ medium }) => medium),
    ["host", "device", "storage", "device"],
  );
  const own = translator();
  own.stored(storedOf(eventsOf("bytes"))[0]!);
  const known = own.size;
  assert.equal(own.stored(storedOf(events)[1]!).unknownBlocks, 1);
  assert.equal(own.size, known, "it changes nothing of what is known");
});

test("SGLang's events are read: arrays of five fields, hashes that are signed integers, no rank", () => {
  const tokens = Array.from({ length: 2 * BLOCK_TOKENS }, (_, i) => 100 + i);
  const [one, two] = [-8_123_456_789_012_345_678n, 4_611_686_018_427_387_905n];
  const message = [
    12.5,
    [
      ["BlockStored", [one], null, tokens.slice(0, BLOCK_TOKENS), BLOCK_TOKENS, null],
      ["BlockStored", [two], one, tokens.slice(BLOCK_TOKENS), BLOCK_TOKENS, null],
      ["BlockRemoved", [two]],
      ["AllBlocksCleared"],
    ],
  ];
  const { events, seconds } = atOnce(decodeBatch(encode(message, { useBigInt64: true })));
  assert.equal(seconds, 12.5);
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["stored", "stored", "removed", "cleared"],
  );
  const own = translator();
  const ours = storedOf(events).flatMap((event) => [...own.stored(event).hashes]);
  assert.deepEqual(ours, promptHashes(tokens));
  const removed = events.find((event) => event.kind === "removed");
  assert.deepEqual([...own.removed(removed!.hashes).hashes], ours.slice(2));
});

test("a long message is read in slices, to the same events as short ones of its parts, or refused as those are", () => {
  const lists = ["reset_int", "bytes", "ranks_int"].flatMap((name) =>
    captured(name).map(({ payload }) => (decode(payload, { useBigInt64: true }) as [number, unknown[]])[1]),
  );
  const parts = Array.from({ length: 40 }, () => lists).flat();
  const long = encode([1.5, parts.flat(), 0], { useBigInt64: true });
  assert.ok(long.length > 100_000, `${long.length} bytes`);
  let pauses = 0;
  const work = decodeBatch(long);
  let slice = work.next();
  for (; slice.done !== true; slice = work.next()) pauses++;
  assert.ok(pauses >= Math.floor(long.length / 65_536), `${pauses} pauses`);
  const batches = lists.map((events) => atOnce(decodeBatch(encode([1.5, events, 0], { useBigInt64: true }))));
  const expected = Array.from({ length: 40 }, () => batches.flatMap(({ events }) => events)).flat();
  assert.deepEqual(slice.value.events, expected);
  assert.equal(slice.value.seconds, 1.5);
  assert.equal(slice.value.ignored, 40 * batches.reduce((sum, { ignored }) => sum + ignored, 0));
  for (const broken of [
    long.subarray(0, -1),
    Buffer.concat([long, Buffer.of(0)]),
    Buffer.concat([Buffer.of(0x91), long]),
  ])
    assert.throws(() => atOnce(decodeBatch(broken)), KvEventFormatError);
  const wrong = encode([1.5, [...parts.flat(), { type: "BlockRemoved", block_hashes: 1 }], 0], { useBigInt64: true });
  assert.throws(() => atOnce(decodeBatch(wrong)), /events\[\d+\]\.block_hashes: expected a list/);
});

test("a block that depends on more than its tokens ends what is translated, wherever it lies; its adapter's name does not", () => {
  const image = ["image-7", 0];
  const event = (extraKeys: BlockStored["extraKeys"], more: Partial<BlockStored> = {}): BlockStored => ({
    kind: "stored",
    hashes: [1, 2, 3].map((low) => ({ low, high: 0 })),
    parent: undefined,
    tokens: Array.from({ length: 3 * BLOCK_TOKENS }, (_, i) => i),
    blockTokens: BLOCK_TOKENS,
    adapter: "",
    extraKeys,
    medium: "device",
    ...more,
  });
  const known = (given: BlockStored): number => {
    const own = translator();
    own.stored(event([], { hashes: [{ low: 9, high: 0 }], tokens: given.tokens.slice(0, BLOCK_TOKENS) }));
    const { hashes, unknownBlocks } = own.stored(given);
    assert.equal(hashes.length / 2 + unknownBlocks, 3);
    return hashes.length / 2;
  };
  const parent = { low: 9, high: 0 };
  assert.equal(known(event([])), 3);
  assert.equal(known(event([image])), 0);
  assert.equal(known(event([undefined, image])), 1);
  assert.equal(known(event([undefined, undefined, image])), 2);
  assert.equal(known(event([["a salt"]])), 3);
  assert.equal(known(event([undefined, ["a salt"]])), 1, "a salt is the first block's alone");
  // Behind a block that is known, the first one may be an image too.
  assert.equal(known(event([image], { parent })), 0);
  assert.equal(known(event([["image-7"]], { parent })), 0);
  assert.equal(known(event([undefined, image], { parent })), 1);
  assert.equal(known(event([["lora"], ["lora"]], { adapter: "lora" })), 3);
  assert.equal(known(event([["lora"], ["lora", "image-7"]], { adapter: "lora" })), 1);
});

test("a hash of 64 bits is the same as a number, as a big integer of either sign, and at the end of a digest", () => {
  const hash = 0x1_8000_0003;
  const digest = Uint8Array.from([9, 9, 9, 9, 0, 0, 0, 1, 0x80, 0, 0, 3]);
  const written = [hash, BigInt(hash), digest.subarray(4), digest];
  const { events } = atOnce(decodeBatch(encode([1, [["BlockRemoved", written]]], { useBigInt64: true })));
  assert.deepEqual(
    events.flatMap((event) => (event.kind === "removed" ? event.hashes : [])),
    written.map(() => ({ low: 0x8000_0003 | 0, high: 1 })),
  );
  const negative = atOnce(decodeBatch(encode([1, [["BlockRemoved", [-1n, -(2n ** 63n)]]]], { useBigInt64: true })));
  assert.deepEqual(
    negative.events.flatMap((event) => (event.kind === "removed" ? event.hashes : [])),
    [
      { low: -1, high: -1 },
      { low: 0, high: -(2 ** 31) },
    ],
  );
});
