import type { AnswerHeaders } from "../../http/headers.ts";

/** Head of an answer in one piece of the most common form, and where its body is. */
export interface PlainHead {
  readonly headers: AnswerHeaders;
  /** Place of the body's first byte. */
  readonly bodyAt: number;
  /** Length of the body that the head declares. */
  readonly bodyBytes: number;
}

/**
 * Reads the head of an answer from bytes[0..to) if all of it is there and it is as plain as can be (RFC 9112): HTTP/1.1,
 * status 200, each name once, printable ASCII, one space before a value and none behind it, a body of a declared length, a
 * connection that is kept without a limit of time. Such a head can be read in one way only. Undefined for every other
 * head, be it well-formed or not: that is for a parser which knows them all.
 */
export function readPlainHead(bytes: Buffer, to: number): PlainHead | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0 || end > HEAD_BYTES_MAX || end + HEAD_END.length > to) return undefined;
  const text = bytes.toString("latin1", 0, end + 2);
  if (!text.startsWith(STATUS_LINE)) return undefined;
  const headers: Record<string, string> = {};
  let bodyBytes = -1;
  for (let at = STATUS_LINE.length; at < text.length;) {
    const lineEnd = text.indexOf("\r\n", at);
    const colon = text.indexOf(": ", at);
    if (colon < 0 || colon > lineEnd) return undefined;
    const name = text.slice(at, colon).toLowerCase();
    const value = text.slice(colon + 2, lineEnd);
    if (!NAME.test(name) || !VALUE.test(value) || name in headers) return undefined;
    if (name === "content-length") {
      if (!LENGTH.test(value)) return undefined;
      bodyBytes = Number(value);
    } else if (name === "connection") {
      if (value !== "keep-alive") return undefined;
    } else if (FRAMING.has(name)) return undefined;
    headers[name] = value;
    at = lineEnd + 2;
  }
  return bodyBytes < 0 ? undefined : { headers, bodyAt: end + HEAD_END.length, bodyBytes };
}

const STATUS_LINE = "HTTP/1.1 200 OK\r\n";
const HEAD_END = Buffer.from("\r\n\r\n");
const HEAD_BYTES_MAX = 4_096;
const NAME = /^[a-z][a-z0-9-]*$/;
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,11})$/;
/** Headers by which a message ends elsewhere, or its connection with it. */
const FRAMING: ReadonlySet<string> = new Set([
  "transfer-encoding",
  "keep-alive",
  "proxy-connection",
  "upgrade",
  "trailer",
  "te",
]);
