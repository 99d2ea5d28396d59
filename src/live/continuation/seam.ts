import type { KeptStream } from "./kept-stream.ts";

/** A place between two tokens of an answer, at which another engine can go on. */
export interface Seam {
  /** Output tokens before it. */
  readonly tokens: number;
  /** Text that the client has behind it: the continuation generates it again, and it is left out there. */
  readonly behind: string;
}

interface Boundary {
  readonly tokens: number;
  /** Code points before it, from the seam that is known so far. */
  readonly at: number;
}

/**
 * Finds the last place in an answer where all text of the tokens before it has reached the client.
 *
 * A token is not always text at once. An engine holds a token back that ends inside a character, and with stop strings
 * the last characters that may begin one. To go on behind a token that was held back would lose its text; worse, an
 * engine whose prompt ends inside a character sends the whole prompt as text once the character is complete (as
 * Hugging Face's DecodeStream does). Hence a place counts only behind an event of a single token with which the text grew:
 * of several tokens in one event, the last may be held back.
 */
export class SeamFinder {
  /** Code points that the engine holds back of all text, for stop strings. */
  readonly #heldBack: number;
  #tokens = 0;
  /** Code points that the client has, and that the engine at hand has made, from the seam on. */
  #shown = 0;
  #made = 0;
  #behind = "";
  #boundaries: Boundary[] = [];

  constructor(heldBack: number) {
    this.#heldBack = heldBack;
  }

  get seam(): Seam {
    return { tokens: this.#tokens, behind: this.#behind };
  }

  /** All text of so many tokens has reached the client. */
  whole(tokens: number): void {
    this.#tokens = tokens;
    this.#shown = 0;
    this.#made = 0;
    this.#behind = "";
    this.#boundaries.length = 0;
  }

  /** An event of `tokens` brought them to `count`, with text of the engine's, of which `shown` went to the client. */
  add(tokens: number, count: number, made: string, shown: string): void {
    this.#made += codePoints(made);
    this.#shown += codePoints(shown);
    this.#behind += shown;
    if (tokens === 1 && made !== "") this.#boundaries.push({ tokens: count, at: this.#made + this.#heldBack });
    let passed = -1;
    while (passed + 1 < this.#boundaries.length && this.#boundaries[passed + 1]!.at <= this.#shown) passed++;
    if (passed >= 0) this.#advance(this.#boundaries.splice(0, passed + 1)[passed]!);
  }

  /** Another engine goes on at the seam. */
  resume(): void {
    this.#made = 0;
    this.#boundaries.length = 0;
  }

  #advance({ tokens, at }: Boundary): void {
    this.#tokens = tokens;
    this.#shown -= at;
    this.#made -= at;
    this.#behind = Array.from(this.#behind).slice(at).join("");
    this.#boundaries = this.#boundaries.map((one) => ({ tokens: one.tokens, at: one.at - at }));
  }
}

/** As engines count text. */
function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if (isHigh(text.charCodeAt(i)) && isLow(text.charCodeAt(i + 1))) count--;
  return count;
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

interface StopAcross {
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
