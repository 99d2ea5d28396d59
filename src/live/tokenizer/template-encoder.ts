import type { Asker } from "../base/loop-turn.ts";
import type { LinearMessages, MessageFrame } from "./linear-messages.ts";
import type { StepCache } from "./step-cache.ts";
import type { ChatTemplate } from "./template/chat-template.ts";
import { isOrdinary } from "./template/linear-template.ts";
import { pythonStrip } from "./template/python-strip.ts";
import type { TextEncoding } from "./bpe/text-encoder.ts";
import { VERBATIM } from "./prompt-steps.ts";
import type { WordStep, Words, WordSource } from "./text/word-source.ts";

/** Tag of the step that holds what the post-processor puts before a text. */
export const BEFORE_TEXT = "before text";

const SCRATCH_WORDS_MIN = 1 << 13;
/** A larger scratch, which a very long message made, is given back. */
const SCRATCH_WORDS_MAX = 1 << 18;

/** Encodes steps: rendered text as it is, and the messages of a linear template with the text before them. */
export class TemplateEncoder implements WordSource {
  readonly #encoding: TextEncoding;
  readonly #cache: StepCache;
  readonly #template: ChatTemplate | undefined;
  readonly #linear: LinearMessages | undefined;
  readonly #beforeText: Int32Array;
  #scratch = new Int32Array(SCRATCH_WORDS_MIN);

  constructor(
    encoding: TextEncoding,
    cache: StepCache,
    beforeText: Int32Array,
    template: ChatTemplate | undefined,
    linear: LinearMessages | undefined,
  ) {
    this.#encoding = encoding;
    this.#cache = cache;
    this.#beforeText = beforeText;
    this.#template = template;
    this.#linear = linear;
  }

  words(step: WordStep, comesAgain: boolean, asker: Asker): Words {
    if (step.tag === BEFORE_TEXT) return this.#beforeText;
    if (step.tag === VERBATIM) return this.#encode(step.text, comesAgain, asker);
    if (!isOrdinary(this.#template!, step.text)) return undefined;
    const frame = this.#linear!.byTag(step.tag)!;
    const text = frame.text + (frame.isStripped ? pythonStrip(step.text) : step.text);
    const words = this.#encode(text, comesAgain, asker);
    return words instanceof Promise ? framedLater(frame, words) : words && this.#framed(frame, words);
  }

  #encode(text: string, comesAgain: boolean, asker: Asker): Words {
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    const words = this.#encoding.encode(text, asker);
    if (words instanceof Promise) return this.#later(text, words);
    if (words !== undefined && comesAgain) this.#cache.set(text, words);
    return words;
  }

  async #later(text: string, promised: Promise<Int32Array | undefined>): Promise<Int32Array | undefined> {
    const words = await promised;
    if (words !== undefined) this.#cache.set(text, words);
    return words;
  }

  #framed(frame: MessageFrame, words: Int32Array): Int32Array {
    const length = frame.tokens.length + words.length;
    if (this.#scratch.length < length || this.#scratch.length > SCRATCH_WORDS_MAX) {
      this.#scratch = new Int32Array(Math.max(SCRATCH_WORDS_MIN, 2 * length));
    }
    this.#scratch.set(frame.tokens);
    this.#scratch.set(words, frame.tokens.length);
    return this.#scratch.subarray(0, length);
  }
}

async function framedLater(
  frame: MessageFrame,
  promised: Promise<Int32Array | undefined>,
): Promise<Int32Array | undefined> {
  const words = await promised;
  if (words === undefined) return undefined;
  const framed = new Int32Array(frame.tokens.length + words.length);
  framed.set(frame.tokens);
  framed.set(words, frame.tokens.length);
  return framed;
}
