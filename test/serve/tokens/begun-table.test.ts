import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { beginTable } from "#serve/tokens/begun-table.ts";
import { folderOf, smallLlama } from "../../live/tokenizer/llama-files.ts";

function configOf(file: string) {
  const cacheFolder = mkdtempSync(join(tmpdir(), "gnomon-begun-"));
  return CONFIG_SCHEMA.parse({ tokenizer: { kind: "huggingface", file, cacheFolder } });
}

test("the table that was begun is the one that is asked for, and another file's is made when it is asked for", async () => {
  const file = join(folderOf({ "tokenizer.json": smallLlama() }), "tokenizer.json");
  const tables = await beginTable(configOf(file), {});
  const request = { tokenizerPath: file, addedTokensDecoder: undefined };
  const begun = await tables(request);
  assert.match("from" in begun ? begun.from : "", /^made and kept/);
  // Read, where it were not the very same.
  assert.equal(await tables(request), begun);
  const decoder = { 7000: { content: "<|mine|>", special: true } };
  const other = await tables({ ...request, addedTokensDecoder: decoder });
  assert.match("from" in other ? other.from : "", /^made and kept/);
});

test("a file that is missing or wrong is reported to whoever asks for its table, and to nobody before", async () => {
  const folder = folderOf({ "tokenizer.json": { model: 7 } });
  const file = join(folder, "tokenizer.json");
  const tables = await beginTable(configOf(file), {});
  await assert.rejects(tables({ tokenizerPath: file, addedTokensDecoder: undefined }), /model: expected an object/);
  const missing = join(folder, "missing.json");
  const none = await beginTable(configOf(missing), {});
  await assert.rejects(none({ tokenizerPath: missing, addedTokensDecoder: undefined }), /missing.json: cannot be read/);
  assert.equal(typeof (await beginTable(CONFIG_SCHEMA.parse({}), {})), "function");
});
