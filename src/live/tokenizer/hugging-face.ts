import { type Asker, STAYS } from "../base/loop-turn.ts";
import { AddedTokens } from "./bpe/added-tokens.ts";
import { BegunChats, type PlannedPrompt, type PromptChain, type PromptChains } from "./prompt-chains.ts";
import type { DescribedTokenizer, TokenizerDescription } from "./described-tokenizer.ts";
import type { HuggingFaceModel } from "./hugging-face-model.ts";
import { linearSteps, renderedText } from "./prompt-plan.ts";
import { promptSteps } from "./prompt-steps.ts";
import type { StepCache } from "./step-cache.ts";
import { BEFORE_TEXT, TemplateEncoder } from "./template-encoder.ts";
import type { TextTokenizer } from "./text-tokenizer.ts";
import { encodeTokens, exactPrompt } from "./token-prompt.ts";
import type { CacheScope, PromptSource, TokenizedPrompt } from "./text/tokenizer.ts";
import type { WordStep, Words } from "./text/word-source.ts";

const NO_TAIL = new Int32Array(0);
const NOTHING_AROUND = { before: NO_TAIL, behind: NO_TAIL };

type Chat = Extract<PromptSource, { kind: "chat" }>;
type Text = Extract<PromptSource, { kind: "text" }>;
type Answer = TokenizedPrompt | Promise<TokenizedPrompt>;

interface Encoding extends PlannedPrompt {
  readonly asker: Asker;
}

interface WholeText extends Omit<Encoding, "steps"> {
  readonly text: string;
  /** Steps before the text's own. */
  readonly first: readonly WordStep[];
}

/** The engine's own tokens, from the model's tokenizer.json and chat template. */
export class HuggingFaceTokenizer implements DescribedTokenizer {
  readonly name = "huggingface";
  readonly #model: HuggingFaceModel;
  readonly #chains: PromptChains;
  readonly #begun: BegunChats;
  readonly #cache: StepCache;
  readonly #encoder: TemplateEncoder;
  readonly #cuts: AddedTokens;
  readonly #estimate: TextTokenizer;
  readonly answerWords: ((text: string) => Words) | undefined;
  #linear = 0;
  #rendered = 0;
  #fellBack = 0;
  #confirmed = 0;
  #contradicted = 0;

  constructor(model: HuggingFaceModel, chains: PromptChains, cache: StepCache, estimate: TextTokenizer) {
    this.#model = model;
    this.#chains = chains;
    this.#begun = new BegunChats(chains);
    this.#cache = cache;
    this.#estimate = estimate;
    this.#cuts = new AddedTokens(model.encoding.cuts);
    this.answerWords = model.isPositionless ? (text) => model.encoding.encode(text) : undefined;
    this.#encoder = new TemplateEncoder(model.encoding, cache, model.surround.before, model.template, model.linear);
  }

  encode(prompt: PromptSource, scope: CacheScope, asker: Asker = STAYS): Answer {
    switch (prompt.kind) {
      case "tokens":
        return encodeTokens(this.#chains, prompt.tokens, scope, asker);
      case "text":
        return this.#encodeText(prompt, scope, asker);
      case "chat":
        return this.#encodeChat(prompt, scope, asker);
    }
  }

  learn(model: string, prompt: TokenizedPrompt, promptTokens: number): void {
    if (!prompt.exact) this.#estimate.learn(model, prompt, promptTokens);
    else if (prompt.promptTokens === promptTokens) this.#confirmed++;
    else this.#contradicted++;
  }

  describe(): TokenizerDescription {
    return {
      name: this.name,
      path: this.#model.path,
      reason: this.#model.reason,
      blockWords: this.#chains.blockWords,
      memo: this.#chains.memo.describe(),
      counters: {
        linear: this.#linear,
        rendered: this.#rendered,
        fellBack: this.#fellBack,
        confirmed: this.#confirmed,
        contradicted: this.#contradicted,
        stepHits: this.#cache.hits,
        stepMisses: this.#cache.misses,
        ...this.#model.encoding.counters,
      },
    };
  }

  close(): void {}

  #encodeText(prompt: Text, scope: CacheScope, asker: Asker): Answer {
    const { before, behind } = prompt.specialTokens === false ? NOTHING_AROUND : this.#model.surround;
    const first = before.length > 0 ? [{ tag: BEFORE_TEXT, text: "" }] : [];
    const whole = { text: prompt.text, first, tail: behind, scope, asker };
    return this.#answerText(whole, () => this.#standIn(prompt, scope, asker));
  }

  #encodeChat(chat: Chat, scope: CacheScope, asker: Asker): Answer {
    const { template, toolTemplate, linear } = this.#model;
    if (template === undefined || isOtherwise(chat)) return this.#standIn(chat, scope, asker);
    const hasOwnTemplate = chat.tools !== undefined && toolTemplate !== undefined;
    if (linear === undefined || hasOwnTemplate) return this.#encodeRendered(chat, scope, asker);
    const plan = this.#begun.plan(chat.beginning, scope, (begun) => linearSteps(chat, template, linear, begun));
    if (plan === undefined) return this.#encodeRendered(chat, scope, asker);
    this.#linear++;
    return this.#answer({ ...plan, tail: linear.tail, scope, asker }, () => {
      this.#linear--;
      return this.#encodeRendered(chat, scope, asker);
    });
  }

  #encodeRendered(chat: Chat, scope: CacheScope, asker: Asker): Answer {
    const { template, toolTemplate } = this.#model;
    const text = renderedText(chat, (chat.tools === undefined ? undefined : toolTemplate) ?? template!);
    if (text === undefined) return this.#standIn(chat, scope, asker);
    this.#rendered++;
    return this.#answerText({ text, first: [], tail: NO_TAIL, scope, asker }, () => this.#standIn(chat, scope, asker));
  }

  #answerText({ text, first, ...rest }: WholeText, otherwise: () => Answer): Answer {
    const cut = promptSteps(text, this.#cuts, rest.asker);
    if (Array.isArray(cut)) return this.#answer({ ...rest, steps: [...first, ...cut] }, otherwise);
    return cut.then((steps) => this.#answer({ ...rest, steps: [...first, ...steps] }, otherwise));
  }

  #answer(prompt: Encoding, otherwise: () => Answer): Answer {
    const chain = this.#chains.encode(prompt, this.#encoder, prompt.asker);
    if (chain instanceof Promise) return this.#later(chain, otherwise);
    return chain === undefined ? otherwise() : exactPrompt(this.#chains, chain);
  }

  async #later(promised: Promise<PromptChain | undefined>, otherwise: () => Answer): Promise<TokenizedPrompt> {
    const chain = await promised;
    return chain === undefined ? otherwise() : exactPrompt(this.#chains, chain);
  }

  #standIn(prompt: PromptSource, scope: CacheScope, asker: Asker): Answer {
    this.#fellBack++;
    return this.#estimate.standIn(prompt, scope, asker);
  }
}

/** The client brings a template of its own, or wants special tokens around what the model's template makes. */
function isOtherwise({ template }: Chat): boolean {
  return (template["chat_template"] ?? null) !== null || template["add_special_tokens"] === true;
}
