import { type Asker, loopTurn, STAYS } from "../../base/loop-turn.ts";
import type { TextEncoding } from "./text-encoder.ts";
import type { Words } from "../text/word-source.ts";
import { type AddedToken, AddedTokens } from "./added-tokens.ts";
import { BpeRun, type BpeShared } from "./bpe-run.ts";
import type { BpeTable } from "./bpe-table.ts";
import { Composer, type Normalizer } from "./composer.ts";
import { MergeTable } from "./merge-table.ts";
import { PieceCache } from "./piece-cache.ts";
import { PieceTable } from "./piece-table.ts";
import { ShortMerge } from "./short-merge.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Work between two yields to the event loop, in bytes scanned: below 2 ms. */
const SLICE_BYTES = 1 << 16;
const SHORT_PIECE_BYTES_MAX = 64;

/** Text to token ids, exactly as the tokenizers library does it without a post-processor. */
export class BpeEncoder implements TextEncoding {
  readonly cuts: readonly AddedToken[];
  readonly added: readonly AddedToken[];
  readonly #shared: BpeShared;
  #run: BpeRun;
  #givenUp = 0;

  /** `normalizer` is the library's, needed where the recipe composes. The table is read and never written. */
  constructor(table: BpeTable, normalizer?: Normalizer) {
    const { added, recipe, differing } = table.facts;
    const vocabulary = vocabularyOf(table);
    this.cuts = added;
    this.added = added;
    this.#shared = {
      vocabulary,
      added: new AddedTokens(added),
      classes: table.classes,
      digits: recipe.digits,
      composer: recipe.composes ? new Composer(normalizer!, differing) : undefined,
      pieces: new PieceCache(vocabulary.entries),
      shortMerge: new ShortMerge(vocabulary.merges, vocabulary.byteIds, SHORT_PIECE_BYTES_MAX),
    };
    this.#run = new BpeRun(this.#shared);
  }

  get counters(): Readonly<Record<string, number>> {
    return { pieceCacheRestarts: this.#shared.pieces.restarts, givenUp: this.#givenUp };
  }

  /**
   * At once for what takes little work: that array is valid until the next call. Else in slices, between other work.
   * Undefined for a text that was made to be slow.
   */
  encode(text: string, asker: Asker = STAYS): Words {
    const run = this.#run;
    run.start(text);
    if (run.advance(SLICE_BYTES)) return this.#result(run);
    this.#run = new BpeRun(this.#shared);
    return this.#finish(run, asker);
  }

  async #finish(run: BpeRun, asker: Asker): Promise<Int32Array | undefined> {
    do await loopTurn(asker);
    while (!run.advance(SLICE_BYTES));
    return this.#result(run);
  }

  #result(run: BpeRun): Int32Array | undefined {
    const tokens = run.tokens();
    if (tokens === undefined) this.#givenUp++;
    return tokens;
  }
}

function vocabularyOf(table: BpeTable): Vocabulary {
  const { byteIds, mergeSlots, mergeMade, entrySlots, entryBytes, facts } = table;
  return {
    byteIds,
    merges: new MergeTable({ slots: mergeSlots, made: mergeMade }),
    entries: facts.recipe.ignoreMerges
      ? new PieceTable({ slots: entrySlots, bytes: entryBytes, seed: facts.seed })
      : undefined,
  };
}
