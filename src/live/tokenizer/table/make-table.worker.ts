import type { AsideAnswer, AsideOrder } from "./make-aside.ts";
import { makeTable } from "./make-table.ts";
import { TableFolder } from "./table-folder.ts";
import { tokenizerDigest } from "./tokenizer-file.ts";

/** Makes one table in a process of its own, and ends. */
process.once("message", (order) => {
  void answer(order as AsideOrder).then((made) => {
    process.send?.(made, () => process.exit(0));
  });
});
process.once("disconnect", () => process.exit(0));

async function answer({ folder, key, digest, ...request }: AsideOrder): Promise<AsideAnswer> {
  try {
    const made = await makeTable(request);
    if ("reason" in made) return { kind: "none", reason: made.reason };
    const isSame = (await tokenizerDigest(request.tokenizerPath)) === digest;
    const notKept = isSame ? keep(folder, key, made.table) : "the file was changed meanwhile";
    if (notKept === undefined) return { kind: "kept" };
    return { kind: "made", bytes: new Uint8Array(made.table).slice(), notKept };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

function keep(folder: string | undefined, key: string, table: SharedArrayBuffer): string | undefined {
  return folder === undefined ? "there is no folder for it" : new TableFolder(folder).write(key, table);
}
