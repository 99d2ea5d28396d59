import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { BPE_TABLE_VERSION } from "../bpe/bpe-table.ts";
import { makeAside } from "./make-aside.ts";
import { makeTable } from "./make-table.ts";
import { TableFolder } from "./table-folder.ts";
import type { TableRequest, TableSource } from "./table-source.ts";
import { tokenizerDigest } from "./tokenizer-file.ts";

/**
 * Tables from a folder, where a start before this one left them: 60 ms in place of 2 s for 128,000 entries. Else they are
 * made in a process of its own, whose memory is gone with it, and kept there for the next. Without a folder, or where it
 * cannot be written, they are made so at each start. `aside` has another process make one.
 */
export function keptTables(folder: string | undefined, aside: typeof makeAside = makeAside): TableSource {
  return async (request) => {
    const digest = await tokenizerDigest(request.tokenizerPath);
    const key = keyOf(digest, request);
    const kept = folder === undefined ? undefined : new TableFolder(folder).read(key);
    if (kept !== undefined) return { table: kept, from: "read from the folder of tables" };
    // The process may not start or be killed, where memory is scarce.
    return (await aside({ ...request, folder, key, digest })) ?? makeTable(request);
  };
}

/** Everything that a table depends on: the file, and the versions of Unicode that its characters were classed by. */
function keyOf(digest: string, { addedTokensDecoder }: TableRequest): string {
  const { version } = createRequire(import.meta.url)("tokenizers/package.json") as { readonly version: string };
  const made = [BPE_TABLE_VERSION, version, process.versions["unicode"], digest, addedTokensDecoder ?? null];
  return createHash("sha256").update(JSON.stringify(made)).digest("hex").slice(0, KEY_DIGITS);
}

const KEY_DIGITS = 40;
