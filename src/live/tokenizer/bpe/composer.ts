/** The library's NFC normalizer. */
export interface Normalizer {
  normalizeString(text: string): string;
}

/** No character below is changed by composition or composes with one before it. */
const UNCHANGED_BELOW = 0x300;
const CHECKED_END = 0x40000;
/**
 * Marks in a row, more than any language writes. JavaScript's composition sorts them by insertion: 80,000 take 1.6 s,
 * the library's 4 ms.
 */
const MANY_MARKS = /\p{M}{9}/u;

/**
 * Unicode composition (NFC) as the tokenizers library does it. JavaScript's is faster but of a newer Unicode version,
 * which differs in some marks; texts with one of those go through the library's own.
 */
export class Composer {
  readonly #library: Normalizer;
  readonly #differing: RegExp | undefined;

  /** `differing`: code points that the two compose differently, where they were searched for before. */
  constructor(library: Normalizer, differing: readonly number[]) {
    this.#library = library;
    const codes = differing.map((code) => `\\u{${code.toString(16)}}`);
    this.#differing = codes.length > 0 ? new RegExp(`[${codes.join("")}]`, "u") : undefined;
  }

  compose(text: string): string {
    // What cannot be encoded is replaced first, as it is before the library sees it.
    const whole = text.toWellFormed();
    if (this.#differing?.test(whole) === true || MANY_MARKS.test(whole)) return this.#library.normalizeString(whole);
    return whole.normalize("NFC");
  }
}

/** Marks that order or compose differently, and the parts of characters that compose differently. Some 0.2 s. */
export function composedDifferently(library: Normalizer): number[] {
  const found = new Set<number>();
  const differs = (text: string): boolean => library.normalizeString(text) !== text.normalize("NFC");
  for (let code = UNCHANGED_BELOW; code < CHECKED_END; code++) {
    if (code >= 0xac00 && code < 0xf900) continue;
    const character = String.fromCodePoint(code);
    if (/\p{M}/u.test(character)) {
      const probes = [
        `a\u0301${character}\u0323${character}`,
        `a\u0334${character}\u0334`,
        `a${character}\u0f71`,
        `a${character}\u0301`,
      ];
      if (probes.some(differs)) found.add(code);
    }
    const parts = character.normalize("NFD");
    if (parts !== character && (differs(parts) || differs(character))) {
      for (const part of `${parts}${character}`) found.add(part.codePointAt(0)!);
    }
  }
  return [...found];
}
