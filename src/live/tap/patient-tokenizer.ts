import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { AskerLeft } from "../base/loop-turn.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";

/** Prompts whose tokens were not had, by reason. */
export interface UntokenizedCounts {
  late: number;
  failed: number;
}

/** The same tokenizers, by the model as the client named it, each as patientTokenizer has it. */
export function patientTokenizers(
  inner: (model: string) => Tokenizer,
  millisMax: number,
  counts: UntokenizedCounts,
): (model: string) => Tokenizer {
  const made = new WeakMap<Tokenizer, Tokenizer>();
  return (model) => {
    const asked = inner(model);
    let waits = made.get(asked);
    if (waits === undefined) made.set(asked, (waits = patientTokenizer(asked, millisMax, counts)));
    return waits;
  };
}

/** A tokenizer that requests wait for so long at most; without tokens they go on all the same. */
export function patientTokenizer(inner: Tokenizer, millisMax: number, counts: UntokenizedCounts): Tokenizer {
  return {
    name: inner.name,
    answerWords: inner.answerWords,
    learn: (model, prompt, tokens) => {
      if (prompt !== NO_TOKENS) inner.learn(model, prompt, tokens);
    },
    close: () => inner.close(),
    encode: (prompt, scope, asker) => {
      try {
        const encoded = inner.encode(prompt, scope, asker);
        return encoded instanceof Promise ? within(encoded, millisMax, counts) : encoded;
      } catch {
        counts.failed++;
        return NO_TOKENS;
      }
    },
  };
}

const NO_TOKENS: TokenizedPrompt = { blocks: EMPTY_CHAIN, promptTokens: 0, exact: false, fellBack: true };

function within(
  encoded: Promise<TokenizedPrompt>,
  millisMax: number,
  counts: UntokenizedCounts,
): Promise<TokenizedPrompt> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      counts.late++;
      resolve(NO_TOKENS);
    }, millisMax);
    encoded.then(
      (prompt) => {
        clearTimeout(timer);
        resolve(prompt);
      },
      (error: unknown) => {
        clearTimeout(timer);
        if (error instanceof AskerLeft) return reject(error);
        counts.failed++;
        resolve(NO_TOKENS);
      },
    );
  });
}
