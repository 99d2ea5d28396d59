import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { nfcNormalizer, Tokenizer as NativeTokenizer } from "tokenizers";
import { BpeEncoder } from "#live/tokenizer/bpe/bpe-encoder.ts";
import { openBpeTable, packBpeTable } from "#live/tokenizer/bpe/bpe-table.ts";
import { makeBpeTable } from "#live/tokenizer/bpe/make-bpe-table.ts";
import { readRecipe } from "#live/tokenizer/bpe/recipe.ts";
import { parseTokenizerJson } from "#live/tokenizer/bpe/tokenizer-json.ts";
import { asQwen, llamaJson, smallLlama } from "../llama-files.ts";
import { RandomStream } from "../random-stream.ts";
import { randomText } from "../random-text.ts";

const SEED = 20_261_121;
const TEXTS = 300;

const FAMILIES = { "Llama 3": (): unknown => llamaJson(), Qwen: (): unknown => asQwen(smallLlama()) };

for (const [family, make] of Object.entries(FAMILIES)) {
  describe(`own encoder against the library, as ${family}`, () => {
    let own: BpeEncoder;
    let native: NativeTokenizer;

    before(() => {
      const text = JSON.stringify(make());
      native = NativeTokenizer.fromString(text);
      const json = parseTokenizerJson(text);
      const recipe = readRecipe(json);
      assert.ok(typeof recipe !== "string");
      const preTokenizer = native.getPreTokenizer()!;
      const pieces = (one: string): number => preTokenizer.preTokenizeString(one).length;
      const rest = { isPositionless: true, surround: undefined };
      const table = makeBpeTable(json, recipe, { pieces, normalizer: nfcNormalizer }, rest);
      // Packed and opened, as a gateway reads it.
      own = new BpeEncoder(openBpeTable(packBpeTable(table))!, nfcNormalizer());
    });

    const library = async (text: string): Promise<number[]> =>
      (await native.encode(text, null, { addSpecialTokens: false })).getIds();

    async function same(text: string, what: string): Promise<void> {
      const found = await own.encode(text);
      assert.ok(found !== undefined, what);
      const copy = Int32Array.from(found);
      const expected = Int32Array.from(await library(text));
      if (!isDeepStrictEqual(copy, expected))
        assert.deepEqual([...copy], [...expected], `${what}: ${JSON.stringify(text)}`);
    }

    test("random text of every script", async () => {
      const random = new RandomStream(SEED);
      for (let i = 0; i < TEXTS; i++) await same(randomText(random), `seed ${SEED}, text ${i}`);
    });

    test("all characters, by class and alone", async () => {
      // Of the third plane, which is Chinese characters alone, one of sixteen.
      const codes = Array.from({ length: 0x30000 }, (_, code) => code)
        .filter((code) => code < 0xd800 || code > 0xdfff)
        .filter((code) => code < 0x20000 || code % 16 === 0);
      for (let from = 0; from < codes.length; from += 8192) {
        const some = codes.slice(from, from + 8192).map((code) => String.fromCodePoint(code));
        await same(some.join(""), `run from ${from}`);
        await same(some.join(" "), `blanks from ${from}`);
      }
    });

    test("long pieces, which are merged in slices between other work", async () => {
      for (const text of ["a".repeat(9000), " ".repeat(9000), "é".repeat(4000), "=-".repeat(4000), "\n".repeat(5000)]) {
        await same(text, "long piece");
        await same(`x ${text}<|eot_id|>${text} y`, "long pieces among others");
      }
      const slow = own.encode("q".repeat(20_000));
      assert.ok(slow instanceof Promise);
      const meanwhile = own.encode("Hello world");
      assert.ok(meanwhile instanceof Int32Array);
      assert.deepEqual([...meanwhile], await library("Hello world"));
      assert.deepEqual([...(await slow)!], await library("q".repeat(20_000)));
    });

    test("text that was made to be slow is given up, and the next one is not", async () => {
      assert.equal(await own.encode("q".repeat(300_000)), undefined);
      assert.equal(own.counters["givenUp"], 1);
      await same("Hello world", "after");
    });

    test("long text takes slices and is the same", async () => {
      const text = "The quick brown fox, 123 times.\n".repeat(6000);
      assert.ok(own.encode(text) instanceof Promise);
      await same(text, "long text");
    });

    test("the cache of pieces starts anew when it is full", async () => {
      const random = new RandomStream(SEED);
      const letters = Array.from("qxzjkvwy");
      const restarts = own.counters["pieceCacheRestarts"]!;
      let text = "";
      for (let i = 0; own.counters["pieceCacheRestarts"] === restarts && i < 200; i++) {
        text = "";
        for (let word = 0; word < 2000; word++) {
          for (let left = 9; left > 0; left--) text += random.of(letters);
          text += " ";
        }
        await own.encode(text);
      }
      assert.equal(own.counters["pieceCacheRestarts"], restarts + 1);
      await same(text, `seed ${SEED}`);
    });
  });
}

test("what the own encoder cannot do is reported with its reason", () => {
  const llama = llamaJson();
  const reason = (change: object): unknown =>
    readRecipe(
      parseTokenizerJson(JSON.stringify({ ...llama, model: { type: "BPE", vocab: {}, merges: [] }, ...change })),
    );
  assert.deepEqual(reason({}), { digits: 3, composes: false, ignoreMerges: false });
  assert.match(String(reason({ pre_tokenizer: { type: "Metaspace" } })), /pre-tokenizer/);
  assert.match(String(reason({ normalizer: { type: "Lowercase" } })), /Lowercase/);
  assert.match(String(reason({ model: { type: "Unigram", vocab: [] } })), /Unigram/);
  assert.match(String(reason({ model: { type: "BPE", vocab: {}, merges: [], byte_fallback: true } })), /byte_fallback/);
  assert.match(String(reason({ added_tokens: [{ id: 7, content: "<x>", lstrip: true }] })), /7.*lstrip/);
});
