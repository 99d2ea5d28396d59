/** What Python's str.strip() takes off the ends; JavaScript's trim() differs in U+001C to U+001F, U+0085 and U+FEFF. */
const SPACE = /[\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

export type Side = "left" | "right" | "both";

/** Python's strip, lstrip and rstrip: white space, or any of `characters`, off the ends. */
export function pythonStrip(text: string, side: Side = "both", characters?: string): string {
  const isTaken = (at: number): boolean =>
    characters === undefined ? isSpace(text, at) : characters.includes(text[at]!);
  let from = 0;
  let to = text.length;
  if (side !== "right") while (from < to && isTaken(from)) from++;
  if (side !== "left") while (to > from && isTaken(to - 1)) to--;
  return to - from === text.length ? text : text.slice(from, to);
}

function isSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
  return SPACE.test(text[at]!);
}
