import type { Seam } from "./seam.ts";

/** Bytes of a code unit, and how many of them are asked for at once. */
const UNIT_BYTES = 2;
const UNITS_AT_ONCE = 1_024;

/**
 * The text of an answer whose engine sends no token ids. Another engine can go on behind it as text, which it cuts into
 * tokens itself: where it cuts otherwise than the first engine made them, what follows may be another text than that one's.
 */
export class KeptText {
  readonly #hold: (bytes: number) => boolean;
  #text = "";
  #heldUnits = 0;
  /** Events with text: an engine that makes several tokens in one step has more tokens than that. */
  tokens = 0;

  /** `hold` is asked before so many bytes more are kept, or fewer where negative; false where there is no room. */
  constructor(hold: (bytes: number) => boolean) {
    this.#hold = hold;
  }

  get text(): string {
    return this.#text;
  }

  /** All text that there is has reached the client. */
  get seam(): Seam {
    return { tokens: this.tokens, behind: "" };
  }

  /** More of the text, as the client has it. False where there is no room to keep it. */
  add(text: string): boolean {
    this.#text += text;
    if (text !== "") this.tokens++;
    if (this.#text.length <= this.#heldUnits) return true;
    const more = Math.max(UNITS_AT_ONCE, this.#text.length - this.#heldUnits);
    if (!this.#hold(UNIT_BYTES * more)) return false;
    this.#heldUnits += more;
    return true;
  }

  close(): void {
    this.#hold(-UNIT_BYTES * this.#heldUnits);
    this.#heldUnits = 0;
    this.#text = "";
  }
}
