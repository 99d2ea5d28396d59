import { nameHash } from "#core/base/random.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { writeBlockSymbols } from "./block-symbols.ts";
import { WORD_BYTES, WORD_VALUES, WORDS_COUNT } from "./words.ts";

export type PromptForm = "text" | "tokens";

export interface PromptOptions {
  readonly form: PromptForm;
  /** Another seed gives other words to the same blocks, so that an engine's cache from an earlier run is of no use. */
  readonly seed: number;
  /** Characters that the receiver counts as a token: text form. */
  readonly charsPerToken: number;
  /** Token ids are drawn from [1000, vocabularyTokens), above the special and single-byte ones: tokens form. */
  readonly vocabularyTokens: number;
}

export const TOKEN_ID_MIN = 1_000;
/** Rendered blocks that are kept for the next prompt that has them. */
const CACHE_BYTES_MAX = 67_108_864;

/**
 * Prompts for block ids: equal leading ids give an equal beginning, and a different id gives different content from
 * its block on. Text is words of four bytes; tokens are a JSON list without its brackets.
 */
export class PromptWriter {
  readonly #options: PromptOptions;
  readonly #tailSeed: number;
  readonly #cache = new Map<number, Buffer>();
  #cacheBytes = 0;
  #cacheBlockTokens = 0;

  constructor(options: PromptOptions) {
    this.#options = options;
    this.#tailSeed = nameHash(`prompt-tail/${options.seed}`);
  }

  /** The prompt as bytes that can stand in a JSON body: quoted text, or a list of token ids. */
  promptJson(request: WorkloadRequest): Buffer {
    if (this.#options.form === "tokens")
      return Buffer.concat([OPEN_LIST, withoutComma(this.#tokens(request)), CLOSE_LIST]);
    if (request.text !== undefined) return Buffer.from(JSON.stringify(request.text));
    return Buffer.concat([QUOTE, ...this.#parts(request), QUOTE]);
  }

  /** A list of prompts of so many tokens each: its blocks are the first one's, and the others have content of their own. */
  promptsJson(request: WorkloadRequest, tokensByPrompt: readonly number[]): Buffer {
    const parts = tokensByPrompt.map((promptTokens, i) => {
      const own = { blockIds: undefined, text: undefined, tokenIds: undefined, index: request.index + i * OWN_APART };
      return this.promptJson({ ...request, promptTokens: Math.max(1, promptTokens), ...(i > 0 && own) });
    });
    return Buffer.concat([OPEN_LIST, ...parts.flatMap((part, i) => (i === 0 ? [part] : [COMMA, part])), CLOSE_LIST]);
  }

  #tokens(request: WorkloadRequest): Buffer {
    if (request.tokenIds !== undefined) return Buffer.from(`${request.tokenIds.join(",")},`, "latin1");
    return Buffer.concat(this.#parts(request));
  }

  #parts(request: WorkloadRequest): Buffer[] {
    const { blockIds, blockTokens, promptTokens } = request;
    const parts: Buffer[] = [];
    let left = promptTokens;
    for (const id of blockIds ?? []) {
      parts.push(left >= blockTokens ? this.#block(id, blockTokens) : this.#render(id, this.#options.seed, left));
      left -= blockTokens;
      if (left <= 0) break;
    }
    if (left > 0) parts.push(this.#render(request.index, this.#tailSeed, left));
    return parts;
  }

  #block(id: number, blockTokens: number): Buffer {
    if (blockTokens !== this.#cacheBlockTokens) this.#clear(blockTokens);
    const held = this.#cache.get(id);
    if (held !== undefined) return held;
    const rendered = this.#render(id, this.#options.seed, blockTokens);
    this.#cache.set(id, rendered);
    this.#cacheBytes += rendered.length;
    for (const [oldest, bytes] of this.#cache) {
      if (this.#cacheBytes <= CACHE_BYTES_MAX) break;
      this.#cache.delete(oldest);
      this.#cacheBytes -= bytes.length;
    }
    return rendered;
  }

  #clear(blockTokens: number): void {
    this.#cache.clear();
    this.#cacheBytes = 0;
    this.#cacheBlockTokens = blockTokens;
  }

  #render(id: number, seed: number, tokens: number): Buffer {
    return this.#options.form === "text" ? this.#words(id, seed, tokens) : this.#tokenList(id, seed, tokens);
  }

  #words(id: number, seed: number, tokens: number): Buffer {
    const words = new Uint32Array(Math.max(1, Math.round((tokens * this.#options.charsPerToken) / WORD_BYTES)));
    writeBlockSymbols(id, seed, WORDS_COUNT, words.length, (i, symbol) => {
      words[i] = WORD_VALUES[symbol] ?? 0;
    });
    return Buffer.from(words.buffer);
  }

  #tokenList(id: number, seed: number, tokens: number): Buffer {
    const ids = new Int32Array(tokens);
    writeBlockSymbols(id, seed, this.#options.vocabularyTokens - TOKEN_ID_MIN, tokens, (i, symbol) => {
      ids[i] = TOKEN_ID_MIN + symbol;
    });
    return Buffer.from(`${ids.join(",")},`, "latin1");
  }
}

/** Between the numbers of a request's prompts, above any number of requests. */
const OWN_APART = 2 ** 36;
const QUOTE = Buffer.from('"');
const COMMA = Buffer.from(",");
const OPEN_LIST = Buffer.from("[");
const CLOSE_LIST = Buffer.from("]");

function withoutComma(list: Buffer): Buffer {
  return list.subarray(0, -1);
}
