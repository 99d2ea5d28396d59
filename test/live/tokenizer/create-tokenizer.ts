import { readFileSync } from "node:fs";
import { type LoadOptions, loadTokenizer } from "#live/tokenizer/create.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";
import { makeTable } from "#live/tokenizer/table/make-table.ts";
import type { MadeTable, TableSource } from "#live/tokenizer/table/table-source.ts";

export interface TokenizerOptions extends LoadOptions {
  readonly blockTokens: number;
}

/** By what a table is made of. */
const made = new Map<string, Promise<MadeTable>>();

/** Tables are made once a process: one takes up to 2 s, and nobody writes to it. */
const tables: TableSource = (request) => {
  const content = `${JSON.stringify(request.addedTokensDecoder)} ${contentOf(request.tokenizerPath)}`;
  const known = made.get(content) ?? makeTable(request);
  made.set(content, known);
  return known;
};

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return path;
  }
}

/** One tokenizer for one block size; throws as `loadTokenizer` does. */
export async function createTokenizer({ blockTokens, ...options }: TokenizerOptions): Promise<DescribedTokenizer> {
  return (await loadTokenizer({ tables, ...options }))(blockTokens);
}
