/** A text in slices of about `charsMax` UTF-16 code units; no slice ends within a character. */
export function* textSlices(text: string, charsMax: number): Generator<string> {
  let from = 0;
  while (from < text.length) {
    let to = Math.min(from + charsMax, text.length);
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to++;
    yield text.slice(from, to);
    from = to;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
