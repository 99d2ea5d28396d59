import assert from "node:assert/strict";
import { test } from "node:test";
import { characterClasses, LETTER, NEWLINE, NUMBER, OTHER, SPACE } from "#live/tokenizer/bpe/character-class.ts";

const CONTRACTIONS = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const tail = String.raw`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const QUESTIONS_MAX = 3_000;

/** A library of another Unicode version: it takes these code points for that character. */
type Taken = (code: number) => string | undefined;

function libraryOf(digits: string, taken: Taken): { pieces: (text: string) => number; asked: () => number } {
  const pattern = new RegExp(String.raw`${CONTRACTIONS}|[^\r\n\p{L}\p{N}]?\p{L}+|${digits}${tail}`, "gu");
  let asked = 0;
  const pieces = (text: string): number => {
    asked++;
    const read = Array.from(text, (character) => taken(character.codePointAt(0)!) ?? character).join("");
    return read.match(pattern)?.length ?? 0;
  };
  return { pieces, asked: () => asked };
}

const CASES: readonly (readonly [what: string, taken: Taken, classes: ReadonlyMap<number, number>])[] = [
  ["the same characters", () => undefined, new Map()],
  [
    "fewer letters and numbers, as an older Unicode version",
    (code) => (code >= 0x31350 || (code >= 0x1d2c0 && code < 0x1d2e0) ? "\u0378" : undefined),
    new Map([
      [0x31350, OTHER],
      [0x3134a, LETTER],
      [0x1d2c0, OTHER],
    ]),
  ],
  [
    "one character otherwise, among others of its class",
    (code) => ({ 0x3042: "1", 0x0663: "a", 0x2460: "!", 0x2028: "x", 0x3000: "!", 0x00d7: " ", 0x2605: "7" })[code],
    new Map([
      [0x3041, LETTER],
      [0x3042, NUMBER],
      [0x0662, NUMBER],
      [0x0663, LETTER],
      [0x2460, OTHER],
      [0x2461, NUMBER],
      [0x2028, LETTER],
      [0x2029, SPACE],
      [0x3000, OTHER],
      [0x00d7, SPACE],
      [0x2605, NUMBER],
      [0x2606, OTHER],
    ]),
  ],
];

for (const digits of [String.raw`\p{N}{1,3}`, String.raw`\p{N}`]) {
  for (const [what, taken, expected] of CASES) {
    test(`classes by a library that cuts numbers by ${digits} and knows ${what}`, () => {
      const { pieces, asked } = libraryOf(digits, taken);
      const classes = characterClasses(pieces);
      for (const [code, found] of expected) assert.equal(classes[code], found, code.toString(16));
      for (let code = 0; code < 0x40000; code++) {
        if (expected.has(code)) continue;
        const right = code >= 0xd800 && code < 0xf900 ? OTHER : own(taken(code) ?? String.fromCodePoint(code));
        if (classes[code] !== right) assert.equal(classes[code], right, code.toString(16));
      }
      assert.ok(asked() < QUESTIONS_MAX, `${asked()} questions`);
    });
  }
}

function own(character: string): number {
  if (/[\r\n]/u.test(character)) return NEWLINE;
  if (/\p{L}/u.test(character)) return LETTER;
  if (/\p{N}/u.test(character)) return NUMBER;
  return /\s/u.test(character) ? SPACE : OTHER;
}
