import type { KeptStream } from "./kept-stream.ts";
import { codePoints } from "./seam.ts";

export interface StopAcross {
  readonly stop: string;
  /** Length of what of the new text belongs to the answer. */
  readonly length: number;
}

/** Code points that an engine holds back of all text, since a stop string may begin in them. */
export function heldBackOf({ stops, includesStop }: KeptStream["plan"]): number {
  return includesStop || stops.length === 0 ? 0 : Math.max(...stops.map(codePoints)) - 1;
}

/** The last characters of a text in which a stop string may have begun; "" where none is looked for. */
export function beginningOfStop({ stops, includesStop }: KeptStream["plan"], text: string): string {
  if (!includesStop || stops.length === 0) return "";
  const longest = Math.max(...stops.map((one) => one.length));
  return longest < 2 ? "" : text.slice(1 - longest);
}

/**
 * A stop string that begins in what the client has and ends in `text`, where an answer ends with its stop string: the
 * endpoint that goes on sees only what it generates itself. Where answers end before theirs, no part of one was shown.
 */
export function stopAcross(
  { plan, lastText }: Pick<KeptStream, "plan" | "lastText">,
  text: string,
): StopAcross | undefined {
  if (lastText === "" || text === "") return undefined;
  const joined = lastText + text;
  let first: StopAcross | undefined;
  for (const stop of plan.stops) {
    const at = joined.indexOf(stop);
    if (at < 0 || at >= lastText.length) continue;
    const length = at + stop.length - lastText.length;
    if (length > 0 && (first === undefined || length < first.length)) first = { stop, length };
  }
  return first;
}
