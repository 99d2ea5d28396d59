import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { BpeEncoder } from "#live/tokenizer/bpe/bpe-encoder.ts";
import { openBpeTable } from "#live/tokenizer/bpe/bpe-table.ts";
import { keptTables } from "#live/tokenizer/table/kept-tables.ts";
import { makeTable } from "#live/tokenizer/table/make-table.ts";
import type { MadeTable } from "#live/tokenizer/table/table-source.ts";
import { createTokenizer } from "../create-tokenizer.ts";
import { folderOf, smallLlama } from "../llama-files.ts";
import { RandomStream } from "../random-stream.ts";
import { randomText } from "../random-text.ts";

const SEED = 20_261_122;
const TEXTS = 500;

let tokenizerPath: string;
let tables: string;
before(() => {
  tokenizerPath = join(folderOf({ "tokenizer.json": smallLlama() }), "tokenizer.json");
  tables = join(folderOf({}), "tables");
});

function encoderOf(made: MadeTable): BpeEncoder {
  assert.ok("table" in made);
  return new BpeEncoder(openBpeTable(made.table)!);
}

test("made in a process of its own, read back at the next start: the same tokens as of a table made here", async () => {
  const request = { tokenizerPath, addedTokensDecoder: undefined };
  const [first, second] = [await keptTables(tables)(request), await keptTables(tables)(request)];
  assert.match("from" in first ? first.from : "", /made and kept/);
  assert.match("from" in second ? second.from : "", /^read/);
  const [here, kept] = [encoderOf(await makeTable(request)), encoderOf(second)];
  const random = new RandomStream(SEED);
  for (let i = 0; i < TEXTS; i++) {
    const text = randomText(random);
    const expected = [...(await here.encode(text))!];
    assert.deepEqual([...(await kept.encode(text))!], expected, `seed ${SEED}, text ${i}: ${JSON.stringify(text)}`);
  }
});

test("another file, or other added tokens, have another table; without a folder it is made each time", async () => {
  const decoder = { 7000: { content: "<|mine|>", special: true } };
  const own = await keptTables(tables)({ tokenizerPath, addedTokensDecoder: decoder });
  assert.equal(readdirSync(tables).length, 2);
  assert.deepEqual([...(await encoderOf(own).encode("<|mine|>"))!].length, 1);
  const none = await keptTables(undefined)({ tokenizerPath, addedTokensDecoder: undefined });
  assert.match("from" in none ? none.from : "", /made and not kept: there is no folder/);
});

test("a family that the own scanner cannot do is reported by the process, and the library does it", async () => {
  const file = join(
    folderOf({ "tokenizer.json": { ...smallLlama(), normalizer: { type: "Lowercase" } } }),
    "tokenizer.json",
  );
  const made = await keptTables(tables)({ tokenizerPath: file, addedTokensDecoder: undefined });
  assert.match("reason" in made ? made.reason : "", /Lowercase/);
  const tokenizer = await createTokenizer({
    kind: "huggingface",
    tokenizerFile: file,
    tables: keptTables(tables),
    blockTokens: 1,
    blockHash: "blake3",
    secret: "s",
  });
  assert.match(tokenizer.describe().path, /^tokenizers library/);
});

test("what is wrong with a file is reported with its path, whichever process found it", async () => {
  const file = join(folderOf({}), "tokenizer.json");
  const load = (): Promise<unknown> =>
    createTokenizer({
      kind: "huggingface",
      tokenizerFile: file,
      tables: keptTables(tables),
      blockTokens: 1,
      blockHash: "blake3",
      secret: "s",
    });
  await assert.rejects(load, {
    message: `${file}: cannot be read (ENOENT); accepted is the path of a tokenizer.json or the directory that holds one`,
  });
  writeFileSync(file, "{");
  await assert.rejects(load, (error: Error) => error.message.startsWith(`${file}: expected JSON`));
});
