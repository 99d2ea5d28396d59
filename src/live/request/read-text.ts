import type { ByteSpan } from "../base/json-scan.ts";

/**
 * The text of body[from..to) with `{}` in the place of objects that need not be read. V8 makes a dictionary of an object
 * that has more than some 128 keys, which takes five to ten times as long a key, and grows faster than the body does.
 */
export function readText(body: Buffer, from: number, to: number, unread: readonly ByteSpan[]): string {
  let text = "";
  let at = from;
  for (const span of unread) {
    if (span.from < at || span.to > to) continue;
    text += `${body.toString("utf8", at, span.from)}{}`;
    at = span.to;
  }
  return text === "" ? body.toString("utf8", from, to) : text + body.toString("utf8", at, to);
}
