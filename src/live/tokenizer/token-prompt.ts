import type { Asker } from "../base/loop-turn.ts";
import type { PromptChain, PromptChains } from "./prompt-chains.ts";
import type { CacheScope, TokenizedPrompt } from "./text/tokenizer.ts";

/** Token ids as they came; ids that no vocabulary has are the engine's to refuse. */
export function encodeTokens(
  chains: PromptChains,
  tokens: readonly number[],
  scope: CacheScope,
  asker?: Asker,
): TokenizedPrompt | Promise<TokenizedPrompt> {
  const chain = chains.encodeWords(scope, new Int32Array(tokens), asker);
  return chain instanceof Promise ? chain.then((done) => exactPrompt(chains, done)) : exactPrompt(chains, chain);
}

/** A prompt whose words are the engine's own tokens. */
export function exactPrompt(chains: PromptChains, chain: PromptChain): TokenizedPrompt {
  const blocks = { hashes: chain.hashes, length: chain.blocks, blockTokens: chains.blockWords };
  return { blocks, promptTokens: chain.words, exact: true, fellBack: false, end: chain.end };
}
