import { type Asker, AskerLeft, STAYS } from "../base/loop-turn.ts";
import type { DescribedTokenizer, TokenizerDescription } from "./described-tokenizer.ts";
import type { PromptChains } from "./prompt-chains.ts";
import type { TextTokenizer } from "./text-tokenizer.ts";
import { encodeTokens } from "./token-prompt.ts";
import type { CacheScope, PromptSource, TokenizedPrompt } from "./text/tokenizer.ts";

/** Puts a body to some engine's POST /tokenize and answers its `tokens`; rejects where there is no such answer. */
export type Ask = (body: Readonly<Record<string, unknown>>, signal: AbortSignal) => Promise<readonly number[]>;

/** Questions under way; beyond them the estimate stands in at once. */
const ASKED_MAX = 64;
/** After so many failures in a row nobody is asked for a while, or every request would wait for the timeout. */
const FAILURES_MAX = 5;
const PAUSE_MILLIS = 5000;
/** Fields of a body that /tokenize takes too. */
const TAKEN_FIELDS = [
  "chat_template",
  "add_special_tokens",
  "add_generation_prompt",
  "continue_final_message",
  "chat_template_kwargs",
] as const;
/** Fields that change the prompt and that /tokenize does not know. */
const UNKNOWN_FIELDS = ["documents", "reasoning_effort"] as const;

type Asked = Exclude<PromptSource, { kind: "tokens" }>;

/** The engine's own tokens, by asking it. Whatever goes wrong, the estimate stands in. */
export class VllmTokenizer implements DescribedTokenizer {
  readonly name = "vllm";
  readonly #ask: Ask;
  readonly #chains: PromptChains;
  readonly #estimate: TextTokenizer;
  readonly #timeoutMillis: number;
  readonly #closed = new AbortController();
  #asking = 0;
  #failuresInRow = 0;
  #pausedUntil = 0;
  #answered = 0;
  #failed = 0;
  #busy = 0;
  #paused = 0;

  constructor(ask: Ask, chains: PromptChains, estimate: TextTokenizer, timeoutMillis: number) {
    this.#ask = ask;
    this.#chains = chains;
    this.#estimate = estimate;
    this.#timeoutMillis = timeoutMillis;
  }

  encode(prompt: PromptSource, scope: CacheScope, asker: Asker = STAYS): TokenizedPrompt | Promise<TokenizedPrompt> {
    if (prompt.kind === "tokens") return encodeTokens(this.#chains, prompt.tokens, scope, asker);
    if (this.#closed.signal.aborted) return this.#estimate.standIn(prompt, scope, asker);
    if (performance.now() < this.#pausedUntil) {
      this.#paused++;
      return this.#estimate.standIn(prompt, scope, asker);
    }
    if (this.#asking >= ASKED_MAX) {
      this.#busy++;
      return this.#estimate.standIn(prompt, scope, asker);
    }
    return this.#encodeAsking(prompt, scope, asker);
  }

  learn(model: string, prompt: TokenizedPrompt, promptTokens: number): void {
    this.#estimate.learn(model, prompt, promptTokens);
  }

  describe(): TokenizerDescription {
    return {
      name: this.name,
      path: "asks an engine's /tokenize",
      reason: "configured; the estimate stands in where no answer comes in time",
      blockWords: this.#chains.blockWords,
      memo: this.#chains.memo.describe(),
      counters: { answered: this.#answered, failed: this.#failed, busy: this.#busy, paused: this.#paused },
    };
  }

  /** Gives up what is being asked. */
  close(): void {
    this.#closed.abort();
  }

  async #encodeAsking(prompt: Asked, scope: CacheScope, asker: Asker): Promise<TokenizedPrompt> {
    const tokens = await this.#tokens(bodyOf(prompt, scope.model));
    if (asker.over) throw new AskerLeft();
    if (tokens === undefined) return this.#estimate.standIn(prompt, scope, asker);
    const encoded = await encodeTokens(this.#chains, tokens, scope, asker);
    const isKnown = prompt.kind === "text" || UNKNOWN_FIELDS.every((field) => prompt.template[field] === undefined);
    return isKnown ? encoded : { ...encoded, exact: false };
  }

  async #tokens(body: Readonly<Record<string, unknown>>): Promise<readonly number[] | undefined> {
    this.#asking++;
    const given = new AbortController();
    const giveUp = (): void => given.abort();
    const timer = setTimeout(giveUp, this.#timeoutMillis);
    this.#closed.signal.addEventListener("abort", giveUp, { once: true });
    try {
      const tokens = await Promise.race([this.#ask(body, given.signal), aborted(given.signal)]);
      this.#failuresInRow = 0;
      this.#answered++;
      return tokens;
    } catch {
      this.#failed++;
      this.#failuresInRow++;
      if (this.#failuresInRow >= FAILURES_MAX) this.#pausedUntil = performance.now() + PAUSE_MILLIS;
      return undefined;
    } finally {
      clearTimeout(timer);
      this.#closed.signal.removeEventListener("abort", giveUp);
      this.#asking--;
    }
  }
}

function bodyOf(prompt: Asked, model: string): Record<string, unknown> {
  if (prompt.kind === "text") {
    const special = prompt.specialTokens === false ? { add_special_tokens: false } : {};
    return { model, prompt: prompt.text, ...special };
  }
  const body: Record<string, unknown> = { model, messages: prompt.messages };
  if (prompt.tools !== undefined) body["tools"] = prompt.tools;
  for (const field of TAKEN_FIELDS) if (prompt.template[field] !== undefined) body[field] = prompt.template[field];
  return body;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("gave up")), { once: true });
  });
}
