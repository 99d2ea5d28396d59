import type { Tokenizer } from "./text/tokenizer.ts";

/** What a log line or a status page shows of a tokenizer. Counters only grow. */
export interface TokenizerDescription {
  readonly name: Tokenizer["name"];
  /** The way that prompts take now, and why it is this one and no faster or more exact one. */
  readonly path: string;
  readonly reason: string;
  readonly blockWords: number;
  readonly memo: MemoDescription;
  /** Counts of this kind of tokenizer, by name. */
  readonly counters: Readonly<Record<string, number>>;
}

export interface MemoDescription {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
}

export interface DescribedTokenizer extends Tokenizer {
  describe(): TokenizerDescription;
}
