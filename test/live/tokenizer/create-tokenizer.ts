import { type LoadOptions, loadTokenizer } from "#live/tokenizer/create.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";

export interface TokenizerOptions extends LoadOptions {
  readonly blockTokens: number;
}

/** One tokenizer for one block size; throws as `loadTokenizer` does. */
export async function createTokenizer({ blockTokens, ...options }: TokenizerOptions): Promise<DescribedTokenizer> {
  return (await loadTokenizer(options))(blockTokens);
}
