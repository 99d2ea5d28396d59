/** What the pre-tokenizer's pattern distinguishes. A carriage return or line feed is a space of its own kind. */
export const OTHER = 0;
export const LETTER = 1;
export const NUMBER = 2;
export const SPACE = 3;
export const NEWLINE = 4;

const CODE_POINTS = 0x110000;
/**
 * What is checked: surrogates and private use have no class, and the planes above hold nothing that is assigned. Each
 * range's code points are one or two UTF-16 units.
 */
const CHECKED = [
  { from: 0, to: 0xd800, units: 1 },
  { from: 0xf900, to: 0x10000, units: 1 },
  { from: 0x10000, to: 0x40000, units: 2 },
] as const;
/** The classes by JavaScript's Unicode version; all else is other. */
const OWN = [
  { pattern: /\p{L}+/gu, found: LETTER },
  { pattern: /\p{N}+/gu, found: NUMBER },
  { pattern: /(?:(?!\ufeff)[\s\u0085])+/gu, found: SPACE },
] as const;
/** Code points in one question to the judge. */
const RUN_MAX = 4096;

/** How many pieces a text is cut into, by the library whose answers count. */
export type PieceCount = (text: string) => number;

/**
 * Class of every code point. JavaScript's Unicode version and the library's differ, so each code point's class is put
 * before the library: whole runs of one class at a time, and single ones where a run turns out to be mixed.
 */
export function characterClasses(pieces: PieceCount): Uint8Array {
  const classes = new Uint8Array(CODE_POINTS);
  for (const { from, to, units } of CHECKED) {
    setOwnClasses(classes, from, to, units);
    for (let start: number = from; start < to;) {
      const end = endOfRun(classes, start, Math.min(to, start + RUN_MAX));
      settleRun(classes, start, end, pieces);
      start = end;
    }
  }
  classes[0x0a] = NEWLINE;
  classes[0x0d] = NEWLINE;
  return classes;
}

function setOwnClasses(classes: Uint8Array, from: number, to: number, units: number): void {
  const text = textOf(from, to);
  for (const { pattern, found } of OWN) {
    for (const { 0: run, index } of text.matchAll(pattern)) {
      const start = from + index / units;
      classes.fill(found, start, start + run.length / units);
    }
  }
}

/** Behind the code points from `start` on that have its class. */
function endOfRun(classes: Uint8Array, start: number, max: number): number {
  let end = start + 1;
  while (end < max && classes[end] === classes[start]) end++;
  return end;
}

function settleRun(classes: Uint8Array, start: number, end: number, pieces: PieceCount): void {
  const uniform = classOfAll(classes[start]!, textOf(start, end), pieces);
  if (uniform !== undefined) classes.fill(uniform, start, end);
  else if (end === start + 1) classes[start] = judged(String.fromCodePoint(start), pieces);
  else {
    const middle = (start + end) >> 1;
    settleRun(classes, start, middle, pieces);
    settleRun(classes, middle, end, pieces);
  }
}

/**
 * The class that all of a text's characters have, where it is the supposed one or, as of what only JavaScript's newer
 * Unicode version knows, other: letters behind a letter, and others behind two others, are one piece; a number between two
 * letters parts them. Spaces are few and asked singly.
 */
function classOfAll(supposed: number, text: string, pieces: PieceCount): number | undefined {
  if (supposed === LETTER && pieces(`a${text}`) === 1) return LETTER;
  if (supposed === NUMBER) {
    const characters = Array.from(text);
    if (pieces(`a${characters.join("a")}a`) === 2 * characters.length + 1) return NUMBER;
  }
  return pieces(`!!${text}`) === 1 ? OTHER : undefined;
}

/** Of the code points of one checked range. */
function textOf(from: number, to: number): string {
  if (to <= 0x10000) {
    return Buffer.from(Uint16Array.from({ length: to - from }, (_, at) => from + at).buffer).toString("utf16le");
  }
  const units = new Uint16Array(2 * (to - from));
  for (let code = from, at = 0; code < to; code++) {
    units[at++] = 0xd800 + ((code - 0x10000) >> 10);
    units[at++] = 0xdc00 + (code & 0x3ff);
  }
  return Buffer.from(units.buffer).toString("utf16le");
}

function judged(character: string, pieces: PieceCount): number {
  if (character === "\r" || character === "\n") return NEWLINE;
  if (pieces(`a${character}`) === 1) return LETTER;
  if (pieces(`!${character}`) === 1) return OTHER;
  return pieces(` ${character}`) === 1 ? SPACE : NUMBER;
}
