import fc from "fast-check";

const SURROGATES_FROM = 0xd800;
const SURROGATES = 0x800;
const CODE_POINTS = 0x110000;

/**
 * Any character of Unicode, to make texts of: as fast-check's unit "binary", which writes a table of all 1.1 million of
 * them before the first text (2 s of CPU in each process).
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc
  .nat({ max: CODE_POINTS - SURROGATES - 1 })
  .map((index) => String.fromCodePoint(index < SURROGATES_FROM ? index : index + SURROGATES), indexOf);

function indexOf(text: unknown): number {
  const code = typeof text === "string" ? text.codePointAt(0) : undefined;
  if (code === undefined || String.fromCodePoint(code) !== text) throw new RangeError("expected one character");
  return code < SURROGATES_FROM ? code : code - SURROGATES;
}
