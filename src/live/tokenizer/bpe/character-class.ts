/** What the pre-tokenizer's pattern distinguishes. A carriage return or line feed is a space of its own kind. */
export const OTHER = 0;
export const LETTER = 1;
export const NUMBER = 2;
export const SPACE = 3;
export const NEWLINE = 4;

const CODE_POINTS = 0x110000;
/** The planes above hold nothing that is assigned, or private use, which has no class. */
const CHECKED_END = 0x40000;
const SURROGATES = [0xd800, 0xe000] as const;
const PRIVATE_USE = [0xe000, 0xf900] as const;
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
  let run: number[] = [];
  let runClass = OTHER;
  const settle = (): void => {
    if (run.length > 0) settleRun(run, runClass, classes, pieces);
    run = [];
  };
  for (let code = 0; code < CHECKED_END; code++) {
    if (within(code, SURROGATES) || within(code, PRIVATE_USE)) continue;
    const found = ownClass(String.fromCodePoint(code));
    if (found !== runClass || run.length === RUN_MAX) settle();
    runClass = found;
    run.push(code);
  }
  settle();
  classes[0x0a] = NEWLINE;
  classes[0x0d] = NEWLINE;
  return classes;
}

function ownClass(character: string): number {
  if (/\p{L}/u.test(character)) return LETTER;
  if (/\p{N}/u.test(character)) return NUMBER;
  return /[\s\u0085]/u.test(character) && character !== "\ufeff" ? SPACE : OTHER;
}

function settleRun(run: readonly number[], supposed: number, classes: Uint8Array, pieces: PieceCount): void {
  if (run.length === 1) {
    classes[run[0]!] = judged(String.fromCodePoint(run[0]!), pieces);
    return;
  }
  // Letters after a letter, and others after an other, are one piece; numbers and spaces are few and asked singly.
  const uniform =
    (supposed === LETTER && pieces(`a${String.fromCodePoint(...run)}`) === 1) ||
    (supposed === OTHER && pieces(`!${String.fromCodePoint(...run)}`) === 1);
  if (uniform) {
    for (const code of run) classes[code] = supposed;
    return;
  }
  const middle = run.length >> 1;
  settleRun(run.slice(0, middle), supposed, classes, pieces);
  settleRun(run.slice(middle), supposed, classes, pieces);
}

function judged(character: string, pieces: PieceCount): number {
  if (character === "\r" || character === "\n") return NEWLINE;
  if (pieces(`a${character}`) === 1) return LETTER;
  if (pieces(`!${character}`) === 1) return OTHER;
  return pieces(` ${character}`) === 1 ? SPACE : NUMBER;
}

function within(code: number, [from, to]: readonly [number, number]): boolean {
  return code >= from && code < to;
}
