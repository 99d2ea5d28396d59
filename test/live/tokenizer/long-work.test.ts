import assert from "node:assert/strict";
import { test } from "node:test";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { type Asker, AskerLeft, STAYS } from "#live/base/loop-turn.ts";
import { ByteSource } from "#live/tokenizer/byte-source.ts";
import { CharacterSource } from "#live/tokenizer/character-source.ts";
import { PromptChains } from "#live/tokenizer/prompt-chains.ts";
import { promptSteps } from "#live/tokenizer/prompt-steps.ts";
import { AddedTokens } from "#live/tokenizer/bpe/added-tokens.ts";
import { ScopeRoots } from "#live/tokenizer/scope-roots.ts";
import type { WordStep, WordSource } from "#live/tokenizer/text/word-source.ts";

const SCOPE = { model: "m", salt: "" };
const LIMITS = { memoEntriesMax: 1_000_000, memoBytesMax: 1e9 };
const TAIL = new Int32Array(0);

function chains(limits = LIMITS): PromptChains {
  return new PromptChains(blake3Hasher(16), new ScopeRoots("s"), limits);
}

function steps(count: number, text = (at: number) => `message ${at}`): WordStep[] {
  return Array.from({ length: count }, (_, at) => ({ tag: "user", text: text(at) }));
}

/** Passes of the event loop until the promise is settled. */
async function passes(promised: Promise<unknown>): Promise<number> {
  let count = 0;
  let settled = false;
  const counted = (): void => {
    count++;
    if (!settled) setImmediate(counted);
  };
  setImmediate(counted);
  await promised;
  settled = true;
  return count;
}

for (const [name, text] of [
  ["distinct", undefined],
  ["equal", () => "x"],
] as const) {
  test(`${name} messages: what the memo moves grows as they do, and so do the turns`, async () => {
    const costs: { moves: number; turns: number }[] = [];
    for (const count of [4_000, 8_000, 16_000]) {
      const fresh = chains();
      const encoded = fresh.encode({ scope: SCOPE, steps: steps(count, text), tail: TAIL }, new ByteSource());
      assert.ok(encoded instanceof Promise);
      const turns = await passes(encoded);
      assert.equal(
        (await encoded)!.words,
        (await chains(LIMITS).encode({ scope: SCOPE, steps: steps(count, text), tail: TAIL }, new ByteSource()))!.words,
      );
      assert.equal(fresh.memo.describe().entries, count + 1);
      assert.ok(fresh.memo.moves <= 2 * count + 10, `${fresh.memo.moves} moves for ${count} messages`);
      costs.push({ moves: fresh.memo.moves, turns });
      // All of them known.
      const again = fresh.encode({ scope: SCOPE, steps: steps(count, text), tail: TAIL }, new ByteSource());
      await again;
      assert.ok(fresh.memo.moves <= costs.at(-1)!.moves + 2 * count + 10);
    }
    for (const [at, { turns }] of costs.entries()) assert.ok(turns <= 40 * 2 ** at, `${turns} turns`);
  });
}

test("a memo that is too small for a conversation ends as it should, and keeps its bounds", async () => {
  const small = chains({ memoEntriesMax: 100, memoBytesMax: 1e9 });
  const large = chains();
  for (const all of [steps(5_000), steps(5_000, () => "x"), steps(5_001)]) {
    const [one, other] = [small, large].map((of) =>
      of.encode({ scope: SCOPE, steps: all, tail: TAIL }, new ByteSource()),
    );
    assert.deepEqual((await one)!.hashes, (await other)!.hashes);
    assert.ok(small.memo.describe().entries <= 100);
  }
});

/** Counts the steps that it is asked for. */
class CountingSource implements WordSource {
  readonly #bytes = new ByteSource();
  count = 0;

  words(step: WordStep, comesAgain: boolean, asker: Asker): ReturnType<ByteSource["words"]> {
    this.count++;
    return this.#bytes.words(step, comesAgain, asker);
  }
}

test("nothing more is encoded once the client left", async () => {
  const source = new CountingSource();
  const asker = { over: false };
  const encoded = chains().encode({ scope: SCOPE, steps: steps(50_000), tail: TAIL }, source, asker);
  assert.ok(encoded instanceof Promise);
  await new Promise((resolve) => setImmediate(resolve));
  const before = source.count;
  asker.over = true;
  await assert.rejects(encoded, AskerLeft);
  assert.equal(source.count, before);
  assert.ok(before < 10_000, `${before} messages by then`);
});

test("of many long requests each pass of the event loop lets one go on", async () => {
  const sources = Array.from({ length: 12 }, () => new CountingSource());
  const shared = chains();
  const encoded = sources.map((source, at) =>
    shared.encode({ scope: { model: "m", salt: String(at) }, steps: steps(6_000), tail: TAIL }, source),
  );
  const total = (): number => sources.reduce((sum, { count }) => sum + count, 0);
  let last = total();
  let most = 0;
  while (last < 12 * 6_000) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, total() - last);
    last = total();
  }
  await Promise.all(encoded.map((one) => Promise.resolve(one)));
  assert.equal(total(), 12 * 6_000);
  assert.ok(most <= 2 * 1_024, `${most} messages in one pass`);
});

for (const [name, source, wordsOf] of [
  ["bytes", new ByteSource(), (text: string): number[] => [...paddedBytes(text)]],
  [
    "characters",
    new CharacterSource(),
    (text: string): number[] => [-1, ...Array.from(text, (c) => c.codePointAt(0)!), -2],
  ],
] as const) {
  test(`a long text as ${name} in turns is what it is at once`, async () => {
    for (const unit of ["ab", "é😀x", "\ud800", "日"]) {
      const text = unit.repeat(Math.ceil(140_000 / unit.length));
      const words = source.words({ tag: "", text }, true, STAYS);
      assert.ok(words instanceof Promise);
      assert.deepEqual([...(await words)], wordsOf(text));
    }
    await assert.rejects(async () => source.words({ tag: "", text: "x".repeat(1e6) }, true, { over: true }), AskerLeft);
  });
}

function paddedBytes(text: string): Int32Array {
  const bytes = Buffer.concat([Buffer.from([0xfe]), Buffer.from(text), Buffer.from([0xff])]);
  const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4, 0xff)]);
  return new Int32Array(padded.buffer.slice(padded.byteOffset, padded.byteOffset + padded.length));
}

test("a long prompt is cut in turns where it is cut at once", async () => {
  const cuts = new AddedTokens(["<|a|>", "<|ab|>", "<"].map((content, id) => ({ id, content })).slice(0, 2));
  const piece = `${"word ".repeat(70)}<|a|>${"<|a".repeat(90)}<|ab|>`;
  const text = piece.repeat(600);
  const steps = promptSteps(text, cuts, STAYS);
  assert.ok(steps instanceof Promise);
  const expected: string[] = [];
  let from = 0;
  for (const { index } of text.matchAll(/<\|ab?\|>/g)) {
    if (index - from < 256) continue;
    expected.push(text.slice(from, index));
    from = index;
  }
  expected.push(text.slice(from));
  assert.deepEqual(
    (await steps).map((step) => step.text),
    expected,
  );
});
