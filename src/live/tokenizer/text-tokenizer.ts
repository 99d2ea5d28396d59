import { canonicalSteps, hasMedia } from "./canonical-chat.ts";
import type { DescribedTokenizer, TokenizerDescription } from "./described-tokenizer.ts";
import type { PromptChain, PromptChains } from "./prompt-chains.ts";
import { TokenRatio } from "./token-ratio.ts";
import type { CacheScope, PromptSource, TokenizedPrompt } from "./tokenizer.ts";
import type { Step, WordSource } from "./word-source.ts";

const MODELS_MAX = 1024;
/** Before the engine has counted anything; English prose and code have 3.5 to 4.7. */
const CHARACTERS_PER_TOKEN = 4;
const NO_TAIL = new Int32Array(0);

export interface TextTokenizerOptions {
  readonly name: "estimate" | "character";
  /** Blocks of text. */
  readonly chains: PromptChains;
  /** Blocks of token ids, for prompts that arrive as such. */
  readonly tokenChains: PromptChains;
  readonly source: WordSource;
  /** Bytes or characters in one word of the source. */
  readonly unitsPerWord: number;
}

/**
 * Cuts blocks from the text itself: equal text has equal tokens, so for telling prefixes apart text serves as well. How
 * many tokens it is follows from a ratio that the engine's own counts correct.
 */
export class TextTokenizer implements DescribedTokenizer {
  readonly name: "estimate" | "character";
  readonly #chains: PromptChains;
  readonly #tokenChains: PromptChains;
  readonly #source: WordSource;
  readonly #unitsPerWord: number;
  readonly #ratio = new TokenRatio(CHARACTERS_PER_TOKEN, MODELS_MAX);
  /** Prompts whose images or sounds are tokens that the text does not show. */
  readonly #unlearnable = new WeakSet<TokenizedPrompt>();
  #learned = 0;
  #ignored = 0;

  constructor(options: TextTokenizerOptions) {
    this.name = options.name;
    this.#chains = options.chains;
    this.#tokenChains = options.tokenChains;
    this.#source = options.source;
    this.#unitsPerWord = options.unitsPerWord;
  }

  encode(prompt: PromptSource, scope: CacheScope): TokenizedPrompt | Promise<TokenizedPrompt> {
    switch (prompt.kind) {
      case "tokens":
        return encodeTokens(this.#tokenChains, prompt.tokens, scope);
      case "text":
        return this.#encodeSteps([{ tag: "", text: prompt.text }], scope, true);
      case "chat":
        return this.#encodeSteps(canonicalSteps(prompt), scope, !hasMedia(prompt.messages));
    }
  }

  learn(model: string, prompt: TokenizedPrompt, promptTokens: number): void {
    if (prompt.exact) return;
    // The ratio then in use is in the prompt: its blocks are of known size in units and of estimated size in tokens.
    const blockUnits = this.#chains.blockWords * this.#unitsPerWord;
    const units = (prompt.promptTokens * blockUnits) / prompt.blocks.blockTokens;
    if (!this.#unlearnable.has(prompt) && this.#ratio.learn(model, units, promptTokens)) this.#learned++;
    else this.#ignored++;
  }

  describe(): TokenizerDescription {
    return {
      name: this.name,
      path: "text, tokens estimated",
      reason: "blocks of equal text have equal tokens; no tokenizer file is needed",
      blockWords: this.#chains.blockWords,
      memo: this.#chains.memo.describe(),
      counters: { learned: this.#learned, ignored: this.#ignored },
    };
  }

  close(): void {}

  #encodeSteps(steps: readonly Step[], scope: CacheScope, learnable: boolean) {
    const chain = this.#chains.encode(scope, steps, NO_TAIL, this.#source);
    return chain instanceof Promise ? this.#later(chain, scope, learnable) : this.#prompt(chain, scope, learnable);
  }

  async #later(chain: Promise<PromptChain>, scope: CacheScope, learnable: boolean): Promise<TokenizedPrompt> {
    return this.#prompt(await chain, scope, learnable);
  }

  #prompt(chain: PromptChain, scope: CacheScope, learnable: boolean): TokenizedPrompt {
    const unitsPerToken = this.#ratio.unitsPerToken(scope.model);
    const units = this.#unitsPerWord;
    const prompt: TokenizedPrompt = {
      blocks: {
        lanes: chain.lanes,
        length: chain.blocks,
        blockTokens: (this.#chains.blockWords * units) / unitsPerToken,
      },
      promptTokens: Math.max(1, Math.round((chain.words * units) / unitsPerToken)),
      exact: false,
      fellBack: false,
    };
    if (!learnable) this.#unlearnable.add(prompt);
    return prompt;
  }
}

/** Token ids as they came; ids that no vocabulary has are the engine's to refuse. */
export function encodeTokens(
  chains: PromptChains,
  tokens: readonly number[],
  scope: CacheScope,
): TokenizedPrompt | Promise<TokenizedPrompt> {
  const chain = chains.encodeWords(scope, Int32Array.from(tokens));
  return chain instanceof Promise ? chain.then((done) => exactPrompt(chains, done)) : exactPrompt(chains, chain);
}

export function exactPrompt(chains: PromptChains, chain: PromptChain): TokenizedPrompt {
  const blocks = { lanes: chain.lanes, length: chain.blocks, blockTokens: chains.blockWords };
  return { blocks, promptTokens: chain.words, exact: true, fellBack: false };
}
