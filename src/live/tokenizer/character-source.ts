import type { Step, WordSource } from "./word-source.ts";

/** No code points: the end of a tag, and the end of a step. */
const TAG_END = -1;
const STEP_END = -2;
const SCRATCH_WORDS_MIN = 1 << 14;
/** A larger scratch, which a very long message made, is given back. */
const SCRATCH_WORDS_MAX = 1 << 18;

/** Text as characters (Unicode code points), one to a word. */
export class CharacterSource implements WordSource {
  #words = new Int32Array(0);

  words({ tag, text }: Step): Int32Array {
    const most = tag.length + text.length + 2;
    if (most > this.#words.length || this.#words.length > SCRATCH_WORDS_MAX) {
      this.#words = new Int32Array(Math.max(SCRATCH_WORDS_MIN, most));
    }
    let at = characters(tag, this.#words, 0);
    this.#words[at++] = TAG_END;
    at = characters(text, this.#words, at);
    this.#words[at++] = STEP_END;
    return this.#words.subarray(0, at);
  }
}

function characters(text: string, words: Int32Array, first: number): number {
  let at = first;
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00) {
      code = text.codePointAt(i)!;
      if (code > 0xffff) i++;
    }
    words[at++] = code;
  }
  return at;
}
