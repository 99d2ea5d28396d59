export type FinishReasons = "no-choice" | "abort" | "unended" | "ended";

/**
 * What the choices in the bytes of OpenAI's JSON say about their end: there is no choice at all, some choice ended in
 * "abort", none has ended ("unended": each finish_reason is null), or some has.
 *
 * Recognised by the name between bare quotes, which cannot stand inside a JSON string, where the quotes would be escaped.
 */
export function scanFinishReasons(bytes: Buffer, start: number, end: number): FinishReasons {
  // What an event lacks would be searched for in all events behind it, once for each.
  const json = bytes.length - end > BEHIND_MAX ? bytes.subarray(0, end) : bytes;
  let at = json.indexOf(NAME, start);
  if (at < 0 || at >= end) return "no-choice";
  let ends: FinishReasons = "unended";
  while (at >= 0 && at < end) {
    let value = at + NAME.length;
    while (json[value] === COLON || json[value]! <= SPACE) value++;
    if (matchesAt(json, value, ABORT)) return "abort";
    if (json[value] === QUOTE) ends = "ended";
    at = end - value > BYTES_LOOPED_MAX ? json.indexOf(NAME, value) : nextName(json, value, end);
  }
  return ends;
}

/** Why an answer of Anthropic's messages ended. vLLM has no word for one that it aborted, and writes null. */
export function isStopReason(value: unknown): boolean {
  return typeof value === "string" && value !== "abort";
}

/** The status of an answer of OpenAI's responses that was aborted, where the engine states that at all. */
export const CANCELLED = "cancelled";
/** The same of one that is whole, or was aborted where the engine does not state that. */
export const COMPLETED = "completed";

/** In the few bytes behind the last choice a search costs less than the call of one. */
function nextName(json: Buffer, from: number, end: number): number {
  for (let at = from; at <= end - NAME.length; at++) if (json[at] === QUOTE && matchesAt(json, at, NAME)) return at;
  return -1;
}

/** The bytes at `at` are those of `expected`. */
export function matchesAt(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

/** Bytes behind the end that cost less to search than to leave out. */
const BEHIND_MAX = 4_096;
const BYTES_LOOPED_MAX = 64;
const NAME = Buffer.from('"finish_reason"');
const ABORT = Buffer.from('"abort"');
const QUOTE = 0x22;
const COLON = 0x3a;
const SPACE = 0x20;
