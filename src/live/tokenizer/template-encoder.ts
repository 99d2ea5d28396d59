import type { StepCache } from "./step-cache.ts";
import type { ChatTemplate } from "./template/chat-template.ts";
import { isOrdinary, type LinearTemplate } from "./template/linear-template.ts";
import { pythonStrip } from "./template/python-strip.ts";
import type { TextEncoding } from "./text-encoder.ts";
import { VERBATIM } from "./prompt-steps.ts";
import type { Step, Words, WordSource } from "./word-source.ts";

/** Tag of the step that holds what the post-processor puts before a text. */
export const BEFORE_TEXT = "before text";

/** Encodes steps: rendered text as it is, and the messages of a linear template with the text before them. */
export class TemplateEncoder implements WordSource {
  readonly #encoding: TextEncoding;
  readonly #cache: StepCache;
  readonly #template: ChatTemplate | undefined;
  readonly #linear: LinearTemplate | undefined;
  readonly #beforeText: Int32Array;

  constructor(
    encoding: TextEncoding,
    cache: StepCache,
    beforeText: Int32Array,
    template: ChatTemplate | undefined,
    linear: LinearTemplate | undefined,
  ) {
    this.#encoding = encoding;
    this.#cache = cache;
    this.#beforeText = beforeText;
    this.#template = template;
    this.#linear = linear;
  }

  words(step: Step): Words {
    if (step.tag === BEFORE_TEXT) return this.#beforeText;
    const text = step.tag === VERBATIM ? step.text : this.#messageText(step);
    if (text === undefined) return undefined;
    const known = this.#cache.get(text);
    if (known !== undefined) return known;
    const words = this.#encoding.encode(text);
    if (words instanceof Promise) return this.#later(text, words);
    if (words !== undefined) this.#cache.set(text, words.slice());
    return words;
  }

  #messageText({ tag, text }: Step): string | undefined {
    const template = this.#template!;
    if (!isOrdinary(template, text)) return undefined;
    const linear = this.#linear!;
    const role = tag.slice(tag.indexOf(">") + 1);
    return linear.before.get(tag)! + (linear.stripped.has(role) ? pythonStrip(text) : text);
  }

  async #later(text: string, promised: Promise<Int32Array | undefined>): Promise<Int32Array | undefined> {
    const words = await promised;
    if (words !== undefined) this.#cache.set(text, words);
    return words;
  }
}
