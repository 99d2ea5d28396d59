import { type Random, randomFor } from "#core/base/random.ts";
import { chainToken, hashTokens } from "./block-hash.ts";

/** From where an answer's tokens are drawn; `follow` is called with each that was generated, where it matters. */
export interface AnswerDraws extends Random {
  follow?(token: number): void;
}

/** What of an answer a prompt holds already. */
export interface BegunAnswer {
  /** Tokens of the prompt before the answer. */
  readonly promptTokens: number;
  /** Tokens of the answer that stand behind them. */
  readonly generated: number;
}

/**
 * Where the answer to a prompt begins. In a chat's prompt, behind its last header and the line break that follows it: what
 * stands there was generated before, as where an answer goes on that broke off at another engine. In any other prompt
 * nothing shows it.
 */
export function begunAnswer(prompt: Int32Array, headerEnd: number | undefined): BegunAnswer | undefined {
  const header = headerEnd === undefined ? -1 : prompt.lastIndexOf(headerEnd);
  if (header < 0) return undefined;
  const promptTokens = Math.min(prompt.length, header + 2);
  return { promptTokens, generated: prompt.length - promptTokens };
}

/**
 * Draws such that an answer goes on as it would have gone on: in a chat by what stands before the answer and the position
 * in it, else by all tokens before each, as a model does.
 */
export function answerDraws(prompt: Int32Array, begun: BegunAnswer | undefined, stream: number): AnswerDraws {
  return begun === undefined
    ? new ChainedDraws(prompt, stream)
    : randomFor(hashTokens(prompt.subarray(0, begun.promptTokens)), stream);
}

class ChainedDraws implements AnswerDraws {
  readonly #stream: number;
  #chain = 0;
  #random: Random;

  constructor(prompt: Int32Array, stream: number) {
    this.#stream = stream;
    for (const token of prompt) this.#chain = chainToken(this.#chain, token);
    this.#random = randomFor(this.#chain >>> 0, stream);
  }

  next(): number {
    return this.#random.next();
  }

  below(bound: number): number {
    return this.#random.below(bound);
  }

  follow(token: number): void {
    this.#chain = chainToken(this.#chain, token);
    this.#random = randomFor(this.#chain >>> 0, this.#stream);
  }
}
