import type { BpeFacts, BpeTable } from "./bpe-table.ts";
import { characterClasses, type PieceCount } from "./character-class.ts";
import { composedDifferently, type Normalizer } from "./composer.ts";
import type { Recipe } from "./recipe.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";
import { readVocabulary } from "./vocabulary.ts";

/** What the tokenizers library is asked while a table is made. */
export interface Library {
  /** Pieces that the pre-tokenizer of this file cuts a text into. */
  readonly pieces: PieceCount;
  /** Its NFC normalizer. */
  readonly normalizer: () => Normalizer;
}

/** Throws an error that states what is wrong with the file, without naming it. */
export function makeBpeTable(
  json: TokenizerJson,
  recipe: Recipe,
  library: Library,
  rest: Pick<BpeFacts, "isPositionless" | "surround">,
): BpeTable {
  const { byteIds, merges, entries } = readVocabulary(json.model, recipe.ignoreMerges);
  const { slots: entrySlots, bytes: entryBytes, seed } = entries?.parts ?? NO_ENTRIES;
  const { slots: mergeSlots, made: mergeMade } = merges.parts;
  const added = json.added_tokens.map(({ id, content }) => ({ id, content }));
  const differing = recipe.composes ? composedDifferently(library.normalizer()) : [];
  return {
    facts: { added, recipe, differing, seed, ...rest },
    byteIds,
    mergeSlots,
    mergeMade,
    entrySlots,
    entryBytes,
    classes: characterClasses(library.pieces),
  };
}

const NO_ENTRIES = { slots: new Int32Array(0), bytes: new Uint8Array(0), seed: 0 };
