import { assert } from "#core/base/assert.ts";
import { type Asker, STAYS } from "../base/loop-turn.ts";
import { BegunChats } from "./begun-chats.ts";
import { hasMedia, leadingSteps, messageSteps } from "./canonical-chat.ts";
import type { DescribedTokenizer, TokenizerDescription } from "./described-tokenizer.ts";
import type { PlannedPrompt, PromptChain, PromptChains } from "./prompt-chains.ts";
import { encodeTokens } from "./token-prompt.ts";
import { TokenRatio } from "./token-ratio.ts";
import type { CacheScope, PromptSource, TokenizedPrompt } from "./text/tokenizer.ts";
import type { WordSource } from "./text/word-source.ts";

const MODELS_MAX = 1024;
type Chat = Extract<PromptSource, { kind: "chat" }>;

const NO_TAIL = new Int32Array(0);

/**
 * A prompt that remembers how long its text is; undefined where images or sounds are tokens that the text does not
 * show.
 */
interface EstimatedPrompt extends TokenizedPrompt {
  readonly textUnits: number | undefined;
}

interface Marks {
  readonly fellBack: boolean;
  /** The engine's count will be of the text alone. */
  readonly learnable: boolean;
  readonly asker: Asker;
}

export interface TextTokenizerOptions {
  readonly name: "estimate" | "character" | "tiktoken";
  /** Blocks of text. */
  readonly chains: PromptChains;
  /** Blocks of token ids, for prompts that arrive as such. */
  readonly tokenChains: PromptChains;
  readonly source: WordSource;
  /** Bytes, characters or foreign tokens in one word of the source. */
  readonly unitsPerWord: number;
  /** Units of an engine's token, before the engine has counted anything. */
  readonly unitsPerToken: number;
  readonly path: string;
  readonly close?: () => void;
}

/**
 * Cuts blocks from the text itself, or from tokens of another model: equal text has equal tokens, so for telling
 * prefixes apart it serves as well. How many tokens it is follows from a ratio that the engine's own counts correct.
 */
export class TextTokenizer implements DescribedTokenizer {
  readonly name: "estimate" | "character" | "tiktoken";
  readonly #chains: PromptChains;
  readonly #begun: BegunChats;
  readonly #tokenChains: PromptChains;
  readonly #source: WordSource;
  readonly #unitsPerWord: number;
  readonly #ratio: TokenRatio;
  readonly #path: string;
  readonly #close: () => void;
  #learned = 0;
  #ignored = 0;

  constructor(options: TextTokenizerOptions) {
    this.name = options.name;
    this.#chains = options.chains;
    this.#begun = new BegunChats(options.chains);
    this.#tokenChains = options.tokenChains;
    this.#source = options.source;
    this.#unitsPerWord = options.unitsPerWord;
    this.#ratio = new TokenRatio(options.unitsPerToken, MODELS_MAX);
    this.#path = options.path;
    this.#close = options.close ?? (() => {});
  }

  encode(prompt: PromptSource, scope: CacheScope, asker?: Asker): TokenizedPrompt | Promise<TokenizedPrompt> {
    return this.#encode(prompt, scope, { fellBack: false, asker: asker ?? STAYS });
  }

  /** Stands in for a tokenizer that cannot do this prompt. */
  standIn(prompt: PromptSource, scope: CacheScope, asker?: Asker): TokenizedPrompt | Promise<TokenizedPrompt> {
    return this.#encode(prompt, scope, { fellBack: true, asker: asker ?? STAYS });
  }

  #encode(
    prompt: PromptSource,
    scope: CacheScope,
    asked: Omit<Marks, "learnable">,
  ): TokenizedPrompt | Promise<TokenizedPrompt> {
    switch (prompt.kind) {
      case "tokens":
        return encodeTokens(this.#tokenChains, prompt.tokens, scope, asked.asker);
      case "text":
        return this.#encodeSteps({ steps: [{ tag: "", text: prompt.text }] }, scope, { ...asked, learnable: true });
      case "chat":
        return this.#encodeChat(prompt, scope, { ...asked, learnable: !hasMedia(prompt.messages) });
    }
  }

  #encodeChat(chat: Chat, scope: CacheScope, marks: Marks): TokenizedPrompt | Promise<TokenizedPrompt> {
    const leading = leadingSteps(chat);
    // Behind tools and the like the chain of a beginning is another one.
    if (leading.length > 0) return this.#encodeSteps({ steps: [...leading, ...messageSteps(chat)] }, scope, marks);
    const plan = this.#begun.plan(chat.beginning, scope, (begun) => messageSteps(chat, begun));
    return this.#encodeSteps(plan!, scope, marks);
  }

  learn(model: string, prompt: TokenizedPrompt, promptTokens: number): void {
    if (prompt.exact) return;
    const { textUnits } = prompt as Partial<EstimatedPrompt>;
    if (textUnits !== undefined && this.#ratio.learn(model, textUnits, promptTokens)) this.#learned++;
    else this.#ignored++;
  }

  describe(): TokenizerDescription {
    return {
      name: this.name,
      path: this.#path,
      reason: "equal text has equal tokens; how many is learned from the engine's counts",
      blockWords: this.#chains.blockWords,
      memo: this.#chains.memo.describe(),
      counters: { learned: this.#learned, ignored: this.#ignored },
    };
  }

  close(): void {
    this.#close();
  }

  #encodeSteps(
    steps: Pick<PlannedPrompt, "steps" | "begun">,
    scope: CacheScope,
    marks: Marks,
  ): TokenizedPrompt | Promise<TokenizedPrompt> {
    const chain = this.#chains.encode({ ...steps, scope, tail: NO_TAIL }, this.#source, marks.asker);
    return chain instanceof Promise ? this.#later(chain, scope, marks) : this.#prompt(chain, scope, marks);
  }

  async #later(chain: Promise<PromptChain | undefined>, scope: CacheScope, marks: Marks): Promise<TokenizedPrompt> {
    return this.#prompt(await chain, scope, marks);
  }

  #prompt(chain: PromptChain | undefined, scope: CacheScope, marks: Marks): TokenizedPrompt {
    assert(chain !== undefined, "text can always be cut into blocks");
    const { tokensAround, unitsPerToken } = this.#ratio.of(scope.model);
    const textUnits = chain.words * this.#unitsPerWord;
    const prompt: EstimatedPrompt = {
      blocks: {
        hashes: chain.hashes,
        length: chain.blocks,
        blockTokens: (this.#chains.blockWords * this.#unitsPerWord) / unitsPerToken,
      },
      promptTokens: Math.max(1, Math.round(tokensAround + textUnits / unitsPerToken)),
      exact: false,
      fellBack: marks.fellBack,
      textUnits: marks.learnable ? textUnits : undefined,
    };
    return prompt;
  }
}
