import type { Answer, AnswerCounts, AnswerHead, Delivery } from "../answer/answer.ts";
import { type Prefilled, readPrefilled } from "./read-prefilled.ts";

/** Reads the answer of the endpoint that computes a prompt; its one token is not for the client. */
export class PrefillAnswer implements Answer {
  readonly carriage = "whole";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #prefilled: (prefilled: Prefilled) => void;
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(delivery: Delivery, head: AnswerHead, prefilled: (prefilled: Prefilled) => void) {
    this.#delivery = delivery;
    this.#head = head;
    this.#prefilled = prefilled;
    const { answerBytesInspected, errorBytesKept } = delivery.limits;
    this.#bytesMax = head.status >= 500 ? errorBytesKept : answerBytesInspected;
  }

  data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#delivery.attemptFailed("garbage");
  }

  ended(): void {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    const prefilled = readPrefilled(this.#head.status, body);
    if (typeof prefilled !== "string") return this.#prefilled(prefilled);
    const isError = this.#head.status >= 500;
    this.#delivery.attemptFailed(prefilled, isError ? { ...this.#head, body } : undefined);
  }

  /** Nothing of it goes out. */
  showHead(): void {}

  writeHeld(): void {}

  counts(): AnswerCounts {
    return { usage: undefined, tokensSeen: undefined };
  }
}
