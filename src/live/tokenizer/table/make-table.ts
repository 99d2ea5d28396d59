import { BpeEncoder } from "../bpe/bpe-encoder.ts";
import { openBpeTable, packBpeTable } from "../bpe/bpe-table.ts";
import { makeBpeTable } from "../bpe/make-bpe-table.ts";
import { readRecipe } from "../bpe/recipe.ts";
import { selfCheck } from "../bpe/self-check.ts";
import { loadNativeModel } from "./native-model.ts";
import type { MadeTable, TableRequest } from "./table-source.ts";
import { readTokenizerText } from "./tokenizer-file.ts";

/**
 * Makes the table of a tokenizer.json and compares its encoder with the library: 1 to 2 s of CPU and 400 MB for 128,000
 * entries, of which what V8 and the library keep afterwards is why a gateway has it done aside.
 */
export async function makeTable({ tokenizerPath, addedTokensDecoder }: TableRequest): Promise<MadeTable> {
  const loaded = await loadNativeModel(await readTokenizerText(tokenizerPath), addedTokensDecoder);
  const { json, native, isPositionless, surround } = loaded;
  const refused = (reason: string): MadeTable => ({ reason, loaded });
  const recipe = readRecipe(json);
  if (typeof recipe === "string") return refused(recipe);
  const { nfcNormalizer } = await import("tokenizers");
  const preTokenizer = native.getPreTokenizer()!;
  const library = {
    pieces: (text: string) => preTokenizer.preTokenizeString(text).length,
    normalizer: nfcNormalizer,
  };
  const around = surround && { before: [...surround.before], behind: [...surround.behind] };
  const table = packBpeTable(makeBpeTable(json, recipe, library, { isPositionless, surround: around }));
  const own = new BpeEncoder(openBpeTable(table)!, recipe.composes ? nfcNormalizer() : undefined);
  const difference = await selfCheck(
    json,
    (text) => own.encode(text),
    async (text) => (await native.encode(text, null, { addSpecialTokens: false })).getIds(),
  );
  if (difference !== undefined) return refused(`the own scanner differs from the library: ${difference}`);
  return { table, from: "made anew" };
}
