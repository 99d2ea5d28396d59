import { LETTER, NEWLINE, NUMBER, OTHER, SPACE } from "./character-class.ts";

const APOSTROPHE = 0x27;
const BLANK = 0x20;
const CASE_BIT = 0x20;

/**
 * End of the piece that starts at `at`, as this pattern cuts UTF-8 text, its alternatives tried in order
 * (`digits` is 1 for Qwen, 3 for Llama 3):
 *
 *     (?i:'s|'t|'re|'ve|'m|'ll|'d)
 *     [^\r\n\p{L}\p{N}]?\p{L}+
 *     \p{N}{1,digits}
 *      ?[^\s\p{L}\p{N}]+[\r\n]*
 *     \s*[\r\n]+
 *     \s+(?!\S)
 *     \s+
 */
export function scanPiece(text: Uint8Array, at: number, end: number, classes: Uint8Array, digits: number): number {
  const first = text[at]!;
  const kind = first < 0x80 ? classes[first]! : classOf(text, at, classes);
  if (kind === LETTER) return letters(text, at + width(first), end, classes);
  // Most pieces are a blank and a word.
  if (first === BLANK && at + 1 < end) {
    const after = classOf(text, at + 1, classes);
    if (after === LETTER) return letters(text, at + 1, end, classes);
    if (after === OTHER) return newlines(text, others(text, at + 1, end, classes), end);
  }
  return rarer(text, at, end, classes, digits, kind);
}

/**
 * Length of the piece that starts at `at`, if it is a word of ASCII letters, with or without a blank before it, of at
 * most 7 bytes; 0 where it may be something else. Most pieces are such words, and this finds their end without a loop.
 * The 8 bytes behind the text must be zero.
 */
export function shortWord(text: Uint8Array, view: DataView, at: number, classes: Uint8Array): number {
  const first = text[at]!;
  if (first >= 0x80) return 0;
  if (classes[first] !== LETTER && first !== BLANK) return 0;
  const low = noLetters(view.getInt32(at, true)) & ~0xff;
  const high = noLetters(view.getInt32(at + 4, true));
  if ((low | high) === 0) return 0;
  const length = low !== 0 ? firstByte(low) : 4 + firstByte(high);
  if (text[at + length]! >= 0x80 || (length === 1 && first === BLANK)) return 0;
  return length;
}

/** The top bit of each of the four bytes that is no ASCII letter. */
function noLetters(bytes: number): number {
  const folded = (bytes | 0x20202020) & 0x7f7f7f7f;
  const fromA = folded + 0x1f1f1f1f;
  const aboveZ = folded + 0x05050505;
  return (~fromA | aboveZ | bytes) & 0x80808080;
}

/** Index of the lowest byte that is not zero. */
function firstByte(bits: number): number {
  return (31 - Math.clz32(bits & -bits)) >> 3;
}

function rarer(text: Uint8Array, at: number, end: number, classes: Uint8Array, digits: number, kind: number): number {
  const first = text[at]!;
  const next = at + width(first);
  if (kind === NUMBER) return numbers(text, next, end, classes, digits);
  if (kind === OTHER) {
    const suffix = first === APOSTROPHE ? contraction(text, next, end) : 0;
    if (suffix > 0) return next + suffix;
    const word = letters(text, next, end, classes);
    return word > next ? word : newlines(text, others(text, next, end, classes), end);
  }
  if (kind === SPACE && next < end && classOf(text, next, classes) === LETTER) return letters(text, next, end, classes);
  return spaces(text, at, next, end, classes, kind);
}

function spaces(text: Uint8Array, at: number, next: number, end: number, classes: Uint8Array, kind: number): number {
  let last = at;
  let behindNewline = kind === NEWLINE ? next : -1;
  let here = next;
  while (here < end) {
    const found = classOf(text, here, classes);
    if (found !== SPACE && found !== NEWLINE) break;
    last = here;
    here += width(text[here]!);
    if (found === NEWLINE) behindNewline = here;
  }
  if (behindNewline >= 0) return behindNewline;
  return here === end || last === at ? here : last;
}

/** Bytes after the apostrophe, 0 where it starts no contraction. */
function contraction(text: Uint8Array, at: number, end: number): number {
  if (at >= end) return 0;
  const first = text[at]! | CASE_BIT;
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return 1;
  if (at + 1 >= end) return 0;
  // U+017F, the long s, is an s to a pattern that ignores case.
  if (text[at] === 0xc5 && text[at + 1] === 0xbf) return 2;
  const second = text[at + 1]! | CASE_BIT;
  if ((first === 0x72 || first === 0x76) && second === 0x65) return 2;
  return first === 0x6c && second === 0x6c ? 2 : 0;
}

function letters(text: Uint8Array, from: number, end: number, classes: Uint8Array): number {
  let at = from;
  while (at < end) {
    const byte = text[at]!;
    if (byte < 0x80) {
      if (classes[byte] !== LETTER) break;
      at++;
    } else {
      if (classOf(text, at, classes) !== LETTER) break;
      at += width(byte);
    }
  }
  return at;
}

function numbers(text: Uint8Array, from: number, end: number, classes: Uint8Array, digits: number): number {
  let at = from;
  for (let count = 1; count < digits && at < end; count++) {
    if (classOf(text, at, classes) !== NUMBER) break;
    at += width(text[at]!);
  }
  return at;
}

function others(text: Uint8Array, from: number, end: number, classes: Uint8Array): number {
  let at = from;
  while (at < end && classOf(text, at, classes) === OTHER) at += width(text[at]!);
  return at;
}

function newlines(text: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (text[at] === 0x0a || text[at] === 0x0d)) at++;
  return at;
}

function classOf(text: Uint8Array, at: number, classes: Uint8Array): number {
  const first = text[at]!;
  if (first < 0x80) return classes[first]!;
  if (first < 0xe0) return classes[((first & 0x1f) << 6) | (text[at + 1]! & 0x3f)]!;
  const high = ((text[at + 1]! & 0x3f) << 6) | (text[at + 2]! & 0x3f);
  if (first < 0xf0) return classes[((first & 0x0f) << 12) | high]!;
  return classes[((first & 0x07) << 18) | (high << 6) | (text[at + 3]! & 0x3f)]!;
}

/** Bytes of the character that starts with this byte. */
function width(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}
