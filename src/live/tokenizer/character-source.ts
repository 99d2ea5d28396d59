import { type Asker, loopTurn } from "../base/loop-turn.ts";
import { textSlices } from "./text-slices.ts";
import type { WordStep, WordSource } from "./text/word-source.ts";

/** No code points: the end of a tag, and the end of a step. */
const TAG_END = -1;
const STEP_END = -2;
const SCRATCH_WORDS_MIN = 1 << 14;
/** Characters at once, about 0.3 ms. Longer texts go in turns, into memory of their own. */
const CHARS_PER_SLICE = 1 << 16;

/** Text as characters (Unicode code points), one to a word. */
export class CharacterSource implements WordSource {
  #words = new Int32Array(0);

  words({ tag, text }: WordStep, _comesAgain: boolean, asker: Asker): Int32Array | Promise<Int32Array> {
    if (text.length > CHARS_PER_SLICE) return cutSlowly(tag, text, asker);
    const most = tag.length + text.length + 2;
    if (most > this.#words.length) this.#words = new Int32Array(Math.max(SCRATCH_WORDS_MIN, most));
    let at = characters(tag, this.#words, 0);
    this.#words[at++] = TAG_END;
    at = characters(text, this.#words, at);
    this.#words[at++] = STEP_END;
    return this.#words.subarray(0, at);
  }
}

async function cutSlowly(tag: string, text: string, asker: Asker): Promise<Int32Array> {
  const words = new Int32Array(tag.length + text.length + 2);
  let at = characters(tag, words, 0);
  words[at++] = TAG_END;
  for (const slice of textSlices(text, CHARS_PER_SLICE)) {
    await loopTurn(asker);
    at = characters(slice, words, at);
  }
  words[at++] = STEP_END;
  return words.subarray(0, at);
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
