import type { Answer, AnswerCounts, AnswerHead, Delivery } from "./answer.ts";
import { errorBody } from "../http/errors.ts";
import { UNSERVED_BYTES_MAX, unservedRefusal } from "../http/unserved-refusal.ts";

/**
 * Carries a refusal that may be the engine's web framework's own: a path that it does not serve, or not by this method. vLLM
 * answers `{"detail":"Not Found"}` then, and clients of OpenAI's API look for an error object. Any other body, such as of a
 * model that there is not, goes through as it is.
 */
export class UnservedAnswer implements Answer {
  readonly carriage = "whole";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(delivery: Delivery, head: AnswerHead) {
    this.#delivery = delivery;
    this.#head = head;
  }

  data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > UNSERVED_BYTES_MAX) this.#delivery.letThrough(this.#head, this.#chunks.splice(0));
  }

  ended(): void {
    this.#delivery.completed("refused", false);
  }

  /** Nothing of it goes out ahead of its end. */
  showHead(): void {}

  writeHeld(): void {
    const { status } = this.#head;
    const given = Buffer.concat(this.#chunks, this.#bytes);
    const refused = unservedRefusal(status, given);
    const body = refused === undefined ? given : Buffer.from(errorBody(refused, this.#delivery.dialect));
    const headers = this.#delivery.headers(this.#head, false);
    headers.push("content-length", String(body.length));
    this.#delivery.writer.whole(status, headers, body);
  }

  counts(): AnswerCounts {
    return { usage: undefined, tokensSeen: undefined };
  }
}
