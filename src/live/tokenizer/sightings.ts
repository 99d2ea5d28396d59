const SLOTS = 1 << 13;
const END_CHARS = 24;
const SAMPLES = 16;

/**
 * Distinguishes a text that comes again from one that comes once, so that only the former is kept. A table of
 * fingerprints in which a newer one takes the place of an older: its answer is probable, never sure.
 */
export class Sightings {
  readonly #slots = new Int32Array(SLOTS);

  /** True where the text was noted with this salt and not forgotten since. */
  has(text: string, salt: number): boolean {
    const print = fingerprint(text, salt);
    return this.#slots[slotOf(print)] === print;
  }

  /** The same, and notes it. */
  note(text: string, salt: number): boolean {
    const print = fingerprint(text, salt);
    const slot = slotOf(print);
    if (this.#slots[slot] === print) return true;
    this.#slots[slot] = print;
    return false;
  }
}

/** By the bits above the lowest, which is the same in all. */
function slotOf(print: number): number {
  return (print >>> 1) & (SLOTS - 1);
}

/** Of its length, its ends and some characters between them; never 0. */
function fingerprint(text: string, salt: number): number {
  const { length } = text;
  const head = Math.min(END_CHARS, length);
  const tail = Math.max(head, length - END_CHARS);
  let h = Math.imul(salt ^ length, 0x9e3779b1);
  for (let at = 0; at < head; at++) h = mixed(h, text.charCodeAt(at));
  for (let at = tail; at < length; at++) h = mixed(h, text.charCodeAt(at));
  const step = 1 + Math.floor((tail - head) / SAMPLES);
  for (let at = head; at < tail; at += step) h = mixed(h, text.charCodeAt(at));
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 1;
}

/** Stays within 32 bits throughout: a sum that may leave them costs an object for each character. */
function mixed(h: number, code: number): number {
  return Math.imul(h ^ code ^ (h >>> 15), 0x85ebca77);
}
