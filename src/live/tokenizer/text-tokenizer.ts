import { assert } from "#core/base/assert.ts";
import { type Asker, STAYS } from "../base/loop-turn.ts";
import {
  BegunChats,
  type BegunChat,
  type PlannedPrompt,
  type PromptChain,
  type PromptChains,
} from "./prompt-chains.ts";
import type { DescribedTokenizer, TokenizerDescription } from "./described-tokenizer.ts";
import { encodeTokens } from "./token-prompt.ts";
import type { CacheScope, PromptSource, TokenizedPrompt, ChatMessage } from "./text/tokenizer.ts";
import type { WordSource, WordStep } from "./text/word-source.ts";
import { LRUCache } from "lru-cache";
import { createHash } from "node:crypto";

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

/** Weight of the newest prompt against all before it, for one of `LONG_TOKENS` or more; a shorter one weighs less. */
const WEIGHT_NEW = 0.05;
const LONG_TOKENS = 128;
/** Tokens around a prompt that are not of its text: a chat template's. */
const AROUND_TOKENS_MAX = 64;
/** What such a token costs the fit against one that a prompt is off by: prompts of one length show a ratio, not these. */
const AROUND_COST = 0.1;
/** A ratio further from the initial one is not of the text it is compared with. */
const FACTOR_MAX = 8;

/** How a text's length becomes tokens: `tokensAround + units / unitsPerToken`. */
interface TokenEstimate {
  readonly tokensAround: number;
  readonly unitsPerToken: number;
}

/** Fading sums over what was observed: its weight, units u, tokens t, u^2 and u t. */
interface Sums {
  weight: number;
  u: number;
  t: number;
  uu: number;
  ut: number;
  estimate: TokenEstimate;
}

/**
 * Tokens of a text by its length in units (bytes, characters or foreign tokens), per model, learned from the engine's own
 * counts. Least squares with fading sums,
 *
 *     tokens = a + b * units
 *
 * held towards a = 0 by AROUND_COST, and begun with the initial ratio as one prompt of LONG_TOKENS would show it. So a
 * greeting, which is template for the most part, moves `a` and not the ratio by which long prompts are measured.
 */
export class TokenRatio {
  readonly #initial: TokenEstimate;
  readonly #longUnits: number;
  readonly #models: LRUCache<string, Sums>;

  constructor(unitsPerToken: number, modelsMax: number) {
    this.#initial = { tokensAround: 0, unitsPerToken };
    this.#longUnits = LONG_TOKENS * unitsPerToken;
    this.#models = new LRUCache({ max: modelsMax });
  }

  of(model: string): TokenEstimate {
    return this.#models.get(model)?.estimate ?? this.#initial;
  }

  /** Returns whether the observation was taken. */
  learn(model: string, units: number, tokens: number): boolean {
    if (!(tokens > 0) || !(units > 0)) return false;
    const expected = units / this.#initial.unitsPerToken;
    if (tokens > FACTOR_MAX * expected + AROUND_TOKENS_MAX || tokens * FACTOR_MAX < expected) return false;
    let sums = this.#models.get(model);
    if (sums === undefined) {
      const uu = this.#longUnits * this.#longUnits;
      sums = { weight: 0, u: 0, t: 0, uu, ut: uu / this.#initial.unitsPerToken, estimate: this.#initial };
      this.#models.set(model, sums);
    }
    const keep = 1 - WEIGHT_NEW * Math.min(1, units / this.#longUnits);
    sums.weight = keep * sums.weight + 1;
    sums.u = keep * sums.u + units;
    sums.t = keep * sums.t + tokens;
    sums.uu = keep * sums.uu + units * units;
    sums.ut = keep * sums.ut + units * tokens;
    sums.estimate = this.#fit(sums);
    return true;
  }

  #fit({ weight, u, t, uu, ut }: Sums): TokenEstimate {
    const { unitsPerToken } = this.#initial;
    const a = Math.min(AROUND_TOKENS_MAX, Math.max(0, (t * uu - ut * u) / ((1 + AROUND_COST) * weight * uu - u * u)));
    const tokensPerUnit = (ut - a * u) / uu;
    const low = unitsPerToken / FACTOR_MAX;
    const high = unitsPerToken * FACTOR_MAX;
    return { tokensAround: a, unitsPerToken: Math.min(high, Math.max(low, 1 / Math.max(tokensPerUnit, 1 / high))) };
  }
}

const PLAIN_ROLES: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool"]);
/** Tag of a step whose text is more than content, so that no content can equal it. */
const COMPOSED = "composed";
/** Fields of a body that change what the engine reads from the first token on. */
const LEADING_FIELDS = [
  "chat_template",
  "add_special_tokens",
  "chat_template_kwargs",
  "documents",
  "reasoning_effort",
] as const;
const UNREADABLE = "unreadable";

/**
 * A chat as steps that need no template: equal prompts give equal steps, and a longer conversation repeats the steps of
 * a shorter one. These come first: tools, where templates put them, and fields of the body.
 */
function leadingSteps(chat: Chat): WordStep[] {
  const steps: WordStep[] = [];
  if (chat.tools !== undefined && chat.tools.length > 0) steps.push({ tag: "tools", text: json(chat.tools) });
  for (const field of LEADING_FIELDS) {
    const value = chat.template[field];
    if (value !== undefined && value !== null) steps.push({ tag: `field ${field}`, text: json(value) });
  }
  return steps;
}

/** Then one for each message, or for each that follows a beginning. */
function messageSteps({ messages }: Chat, begun?: BegunChat): WordStep[] {
  const steps: WordStep[] = [];
  for (let at = begun?.messages ?? 0; at < messages.length; at++) steps.push(messageStep(messages[at]!));
  return steps;
}

/** True where part of the prompt is no text, so that its tokens are not those of the steps. */
function hasMedia(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ content }) => Array.isArray(content) && content.some((part) => textOf(part) === undefined));
}

function messageStep(message: ChatMessage): WordStep {
  const { role, content } = message;
  const plain = isPlain(message) ? plainText(content) : undefined;
  if (plain !== undefined) return { tag: role, text: plain };
  const pieces = [role];
  for (const part of parts(content)) pieces.push(textOf(part) ?? digest(part));
  for (const field of Object.keys(message)) {
    if (field === "role" || field === "content") continue;
    pieces.push(field, json(message[field]));
  }
  return { tag: COMPOSED, text: pieces.map(terminated).join("") };
}

function isPlain(message: ChatMessage): boolean {
  for (const field in message) if (field !== "role" && field !== "content") return false;
  return PLAIN_ROLES.has(message.role);
}

/** Engines join text parts with a newline. */
function plainText(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  const texts = parts(content).map(textOf);
  return texts.every((text) => text !== undefined) ? texts.join("\n") : undefined;
}

function parts(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return content === undefined || content === null ? [] : [content];
}

/** An end instead of a length in front, so that a text and a longer one that begins with it begin alike. */
function terminated(piece: string): string {
  return `${piece.replaceAll("\0", "\0a")}\0b`;
}

function textOf(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  if (typeof part !== "object" || part === null || !("text" in part)) return undefined;
  return typeof part.text === "string" ? part.text : undefined;
}

/** Stands for an image or a sound, which may be megabytes: equal where the part is equal. */
function digest(part: unknown): string {
  return createHash("sha256").update(json(part)).digest("base64");
}

/** JSON.stringify overflows the stack on what JSON.parse still reads, if it is nested deeply enough. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}
