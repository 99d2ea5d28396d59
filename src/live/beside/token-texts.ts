import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { isFields } from "../base/fields.ts";
import { RequestHeaders } from "../http/headers.ts";
import type { EngineCaller } from "./engine-caller.ts";

/** Longest that an engine may take to write a few tokens as text. */
const MILLIS_MAX = 2_000;
const ANSWER_BYTES_MAX = 1_048_576;
const OK = 200;

/** Asks engines for the text of tokens (vLLM's `/detokenize`). */
export class TokenTexts {
  readonly #caller: EngineCaller;

  constructor(caller: EngineCaller) {
    this.#caller = caller;
  }

  /** Undefined where the engine does not state it. */
  async of(entry: EndpointEntry, model: string, tokens: ArrayLike<number>): Promise<string | undefined> {
    try {
      const body = Buffer.from(JSON.stringify({ model, tokens: Array.from(tokens) }));
      const answer = await this.#caller.call(entry, { ...QUESTION, body, signal: AbortSignal.timeout(MILLIS_MAX) });
      const text = await textUpTo(ANSWER_BYTES_MAX, answer.body);
      const stated: unknown = answer.statusCode === OK && text !== undefined ? JSON.parse(text) : undefined;
      return isFields(stated) && typeof stated["prompt"] === "string" ? stated["prompt"] : undefined;
    } catch {
      return undefined;
    }
  }

  /**
   * How many tokens have `length` code units of the text that they all have together; all of them where the engine does
   * not say. The text of a token that ends inside a character is that of the one that completes it.
   */
  async countUpTo(
    length: number,
    { entry, model, tokens, text }: { entry: EndpointEntry; model: string; tokens: readonly number[]; text: string },
  ): Promise<number> {
    const whole = tokens.length > 1 ? await this.of(entry, model, tokens) : undefined;
    // At the beginning of a text some tokenizers write no blank, which others of its parts lack then too.
    if (whole?.endsWith(text.trimStart()) !== true) return tokens.length;
    let [from, to] = [1, tokens.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const part = await this.of(entry, model, tokens.slice(0, middle));
      if (part === undefined) return tokens.length;
      const rest = whole.length - part.replace(INCOMPLETE, "").length;
      if (text.length - rest >= length) to = middle;
      else from = middle + 1;
    }
    return from;
  }
}

/** What stands for the beginning of a character. */
const INCOMPLETE = /\ufffd+$/;

const QUESTION = {
  method: "POST",
  path: "/detokenize",
  headers: new RequestHeaders(["content-type", "application/json"]),
  requestId: "gnomon-texts",
  dropAuthorization: true,
  withheld: new Set<string>(),
} as const;

async function textUpTo(bytesMax: number, body: AsyncIterable<Buffer>): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    // Leaving the loop ends the answer.
    if (bytes > bytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
