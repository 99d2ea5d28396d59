import { blake3Hasher, fastHasher, type BlockHasher } from "#core/prompt/block-hash.ts";
import { ByteSource } from "./byte-source.ts";
import { CharacterSource } from "./character-source.ts";
import type { DescribedTokenizer } from "./described-tokenizer.ts";
import { PromptChains } from "./prompt-chains.ts";
import { ScopeRoots } from "./scope-roots.ts";
import { TextTokenizer } from "./text-tokenizer.ts";

const MEMO_ENTRIES_MAX = 65_536;
const MEMO_BYTES_MAX = 256 * 1024 * 1024;
/** Characters per block of kind character, as its inventors recommend. */
const BLOCK_CHARACTERS = 128;
const BYTES_PER_WORD = 4;

export interface TokenizerOptions {
  readonly kind: "estimate" | "character";
  /** Tokens per block, the engine's own block size. Kind estimate takes 4 bytes for a token. */
  readonly blockTokens: number;
  /** Characters per block of kind character; 128 unless given. */
  readonly blockCharacters?: number;
  readonly blockHash: "blake3" | "fast";
  /** Keys the chains' roots. */
  readonly secret: string | Uint8Array;
  /** Bounds of the memo of prefixes: messages, and bytes of them. 0 entries turn it off. */
  readonly memoEntriesMax?: number;
  readonly memoBytesMax?: number;
}

/** Throws an error that names the file and what is accepted, where a tokenizer cannot be made. */
export async function createTokenizer(options: TokenizerOptions): Promise<DescribedTokenizer> {
  const hasher = options.blockHash === "fast" ? fastHasher : blake3Hasher;
  const roots = new ScopeRoots(options.secret);
  const limits = {
    memoEntriesMax: options.memoEntriesMax ?? MEMO_ENTRIES_MAX,
    memoBytesMax: options.memoBytesMax ?? MEMO_BYTES_MAX,
  };
  const chains = (blockHasher: BlockHasher): PromptChains => new PromptChains(blockHasher, roots, limits);
  const tokenChains = chains(hasher(options.blockTokens));
  switch (options.kind) {
    case "estimate":
      return new TextTokenizer({
        name: "estimate",
        chains: tokenChains,
        tokenChains,
        source: new ByteSource(),
        unitsPerWord: BYTES_PER_WORD,
      });
    case "character":
      return new TextTokenizer({
        name: "character",
        chains: chains(hasher(options.blockCharacters ?? BLOCK_CHARACTERS)),
        tokenChains,
        source: new CharacterSource(),
        unitsPerWord: 1,
      });
  }
}
