/**
 * V8 hashes longer strings by their length alone, so that a map of them could be made to degenerate; longer texts are
 * filed under a sample of themselves.
 */
const KEY_CHARS_MAX = 8192;
const SAMPLE_CHARS = 256;

/** Key of a text in a map. Long texts may share one: what is found must be compared. */
export function textKey(text: string): string {
  if (text.length <= KEY_CHARS_MAX) return text;
  const middle = text.length >> 1;
  const samples = [text.slice(0, SAMPLE_CHARS), text.slice(middle, middle + SAMPLE_CHARS), text.slice(-SAMPLE_CHARS)];
  return `${text.length}:${samples.join("")}`;
}
