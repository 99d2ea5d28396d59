export interface OwedPiece {
  /** What may go to the client now. */
  readonly text: string;
  /** The stop string that ends the answer here; undefined where none does. */
  readonly stop: string | undefined;
}

/**
 * The text of an answer whose first engine broke while it held some back for stop strings, which the client is still to
 * get. A stop string may begin in that and end in what the next engine makes, which sees only its own; so this one looks,
 * and holds back as engines do.
 */
export class OwedText {
  readonly #stops: readonly string[];
  readonly #heldBack: number;
  #text: string;
  /** Leading part of the text that the first engine made. */
  #owed: number;

  /** The next engine sends its text at once, and with the stop string that it meets. */
  constructor(owed: string, stops: readonly string[]) {
    this.#text = owed;
    this.#owed = owed.length;
    this.#stops = stops;
    this.#heldBack = Math.max(...stops.map((stop) => stop.length)) - 1;
  }

  /** More of the text. `ended`: the engine ends the answer with it, by a stop string of its own or without one. */
  add(text: string, ended: { readonly stop: string | undefined } | undefined): OwedPiece {
    this.#text += text;
    const across = this.#across();
    const stop = across?.stop ?? ended?.stop;
    if (across !== undefined) this.#text = this.#text.slice(0, across.at);
    else if (stop !== undefined && this.#text.endsWith(stop)) this.#text = this.#text.slice(0, -stop.length);
    const isLast = stop !== undefined || ended !== undefined;
    const end = isLast ? this.#text.length : wholeUpTo(this.#text, Math.max(0, this.#text.length - this.#heldBack));
    const shown = this.#text.slice(0, end);
    this.#text = this.#text.slice(end);
    this.#owed = Math.max(0, this.#owed - end);
    return { text: shown, stop };
  }

  /** The stop string that ends first of those that begin in what the first engine made. */
  #across(): { readonly stop: string; readonly at: number } | undefined {
    let first: { readonly stop: string; readonly at: number } | undefined;
    for (const stop of this.#stops) {
      const at = this.#text.indexOf(stop);
      if (at < 0 || at >= this.#owed) continue;
      if (first === undefined || at + stop.length < first.at + first.stop.length) first = { stop, at };
    }
    return first;
  }
}

/** The same place, or the one before it where it is in the middle of a character. */
function wholeUpTo(text: string, end: number): number {
  const isSplit = end > 0 && end < text.length && text.codePointAt(end - 1)! > 0xffff;
  return isSplit ? end - 1 : end;
}
