import type { Tokenizer as NativeTokenizer } from "tokenizers";
import { type Asker, AskerLeft, STAYS } from "../base/loop-turn.ts";
import type { AddedToken } from "./bpe/added-tokens.ts";
import type { TokenizerJson } from "./bpe/tokenizer-json.ts";
import type { TextEncoding } from "./bpe/text-encoder.ts";

/** Encodings at once in the thread pool, which serves files and name look-ups too. */
const RUNNING_MAX = 3;
const WAITING_MAX = 512;
/** A thread cannot be taken from a text that nobody waits for any more; this is some two seconds of it. */
const CHARS_MAX = 1 << 22;

/** The tokenizers library itself, which works for every family, in threads of its own. */
export class NativeEncoder implements TextEncoding {
  readonly cuts: readonly AddedToken[];
  readonly added: readonly AddedToken[];
  readonly #native: NativeTokenizer;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #refused = 0;
  #failed = 0;

  constructor(native: NativeTokenizer, json: TokenizerJson) {
    this.#native = native;
    this.cuts = cutTokens(json);
    this.added = json.added_tokens;
  }

  get counters(): Readonly<Record<string, number>> {
    return { refused: this.#refused, failed: this.#failed };
  }

  async encode(text: string, asker: Asker = STAYS): Promise<Int32Array | undefined> {
    if (text.length > CHARS_MAX) {
      this.#refused++;
      return undefined;
    }
    if (this.#running >= RUNNING_MAX) {
      if (this.#waiting.length >= WAITING_MAX) {
        this.#refused++;
        return undefined;
      }
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    } else this.#running++;
    try {
      if (asker.over) throw new AskerLeft();
      const encoding = await this.#native.encode(text, null, { addSpecialTokens: false });
      return Int32Array.from(encoding.getIds());
    } catch (error) {
      if (error instanceof AskerLeft) throw error;
      this.#failed++;
      return undefined;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}

/** Added tokens are taken out before all else, unless a flag ties them to their surroundings. */
function cutTokens(json: TokenizerJson): AddedToken[] {
  if (JSON.stringify(json.pre_tokenizer ?? null).includes('"prepend_scheme":"first"')) return [];
  return json.added_tokens.filter((token) => !token.single_word && !token.lstrip && !token.rstrip && !token.normalized);
}
