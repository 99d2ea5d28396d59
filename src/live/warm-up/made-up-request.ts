import type { Tokenizer } from "../tokenizer/text/tokenizer.ts";
import { MADE_UP_MODEL as MODEL } from "./made-up-endpoint.ts";

/** Of an answer that is streamed. */
export const EVENTS = 20;

export const SILENT = { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} };

/** The made-up engine's counts are of no prompt, so they must neither correct nor contradict a tokenizer. */
export function withoutLearning(tokenizer: Tokenizer): Tokenizer {
  const { name } = tokenizer;
  return {
    name,
    encode: (prompt, scope, asker) => tokenizer.encode(prompt, scope, asker),
    learn: () => {},
    close: () => {},
  };
}

/**
 * Conversations of one to eight messages, each sent twice, every fourth request streamed. Some have long messages: the rest
 * of such a body is read behind messages that are known, and a prompt of thousands of tokens gives numbers that no longer
 * fit 31 bits. Code that was optimized without having met those is thrown away when the first client sends them.
 */
export function madeUpBody(n: number): string {
  const conversation = n >> 4;
  const words = conversation % 32 === 4 ? 200 : conversation % 8 === 0 ? 65 : 10;
  const messages = Array.from({ length: 1 + (n % 8) }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${conversation} ${i} ${"made up for the warm-up ".repeat(words)}`,
  }));
  return JSON.stringify({ model: MODEL, messages, max_tokens: EVENTS, ...(n % 4 === 0 ? { stream: true } : {}) });
}
