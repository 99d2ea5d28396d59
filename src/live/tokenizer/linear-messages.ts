import type { AddedToken } from "./bpe/added-tokens.ts";
import { AddedTokens } from "./bpe/added-tokens.ts";
import { type LinearTemplate, pairKey } from "./template/linear-template.ts";
import type { TextEncoding } from "./bpe/text-encoder.ts";

/** What a linear template puts before one kind of message. */
export interface MessageFrame {
  /** Tag of its steps. */
  readonly tag: string;
  /** Tokens up to and including the last special one. */
  readonly tokens: Int32Array;
  /** Text behind that, which is encoded together with the content. */
  readonly text: string;
  readonly isStripped: boolean;
}

/** A linear template with its fixed text encoded as far as it can be. */
export class LinearMessages {
  /** Tokens behind the last message. */
  readonly tail: Int32Array;
  readonly #byTag: ReadonlyMap<string, MessageFrame>;
  /** By the role before it, "" for none, and its own. */
  readonly #byRoles = new Map<string, Map<string, MessageFrame>>();

  constructor(frames: readonly MessageFrame[], tail: Int32Array) {
    this.tail = tail;
    this.#byTag = new Map(frames.map((frame) => [frame.tag, frame]));
  }

  byTag(tag: string): MessageFrame | undefined {
    return this.#byTag.get(tag);
  }

  /** The frame of a message behind another, undefined where the template was not learned for it. */
  between(previous: string | undefined, role: string): MessageFrame | undefined {
    const before = previous ?? "";
    const known = this.#byRoles.get(before)?.get(role);
    if (known !== undefined) return known;
    const frame = this.#byTag.get(pairKey(previous, role));
    if (frame === undefined) return undefined;
    const frames = this.#byRoles.get(before) ?? new Map<string, MessageFrame>();
    this.#byRoles.set(before, frames.set(role, frame));
    return frame;
  }
}

/** Encodes the fixed text; the reason where messages are not independent of each other. */
export async function linearMessages(linear: LinearTemplate, encoding: TextEncoding): Promise<LinearMessages | string> {
  const cuts = new AddedTokens(encoding.cuts);
  const behindMessages = [...linear.before].filter(([tag]) => tag.includes(">")).map(([, text]) => text);
  if (![...behindMessages, linear.tail].every((text) => isCut(text, encoding.cuts))) {
    return "its chat template does not put a special token between messages";
  }
  const frames: MessageFrame[] = [];
  for (const [tag, text] of linear.before) {
    const split = lastCutEnd(text, cuts);
    const tokens = await encoding.encode(text.slice(0, split));
    if (tokens === undefined) return "the fixed text of its chat template could not be encoded";
    const role = tag.slice(tag.indexOf(">") + 1);
    frames.push({ tag, tokens: tokens.slice(), text: text.slice(split), isStripped: linear.stripped.has(role) });
  }
  const tail = await encoding.encode(linear.tail);
  if (tail === undefined) return "the generation prompt of its chat template could not be encoded";
  return new LinearMessages(frames, tail.slice());
}

function lastCutEnd(text: string, cuts: AddedTokens): number {
  let end = 0;
  for (let match = cuts.find(text, 0); match !== undefined; match = cuts.find(text, end)) {
    end = match.start + match.content.length;
  }
  return end;
}

/** True where `text` starts with a token that nothing before it can reach into. */
function isCut(text: string, cuts: readonly AddedToken[]): boolean {
  const first = cuts.find(({ content }) => content !== "" && text.startsWith(content));
  return first !== undefined && !cuts.some(({ content }) => overlaps(content, first.content));
}

/** A token that ends with the beginning of another could take it over. */
function overlaps(token: string, next: string): boolean {
  for (let length = 1; length < Math.min(token.length, next.length); length++) {
    if (token.endsWith(next.slice(0, length))) return true;
  }
  return false;
}
