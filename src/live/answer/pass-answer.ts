import type { Answer, AnswerCounts, AnswerHead, Delivery } from "./answer.ts";
import { headerOf } from "../http/headers.ts";

/** Carries an answer through unread: refusals of the engine, binary bodies, and answers too long to hold. */
export class PassAnswer implements Answer {
  readonly carriage = "through";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  #first: Buffer | undefined;

  constructor(delivery: Delivery, head: AnswerHead) {
    this.#delivery = delivery;
    this.#head = head;
  }

  data(chunk: Buffer): void {
    if (this.#delivery.state === "passing") return this.#delivery.write(chunk);
    this.#first = chunk;
    this.#delivery.firstBytes();
  }

  ended(): void {
    this.#delivery.completed(this.#head.status >= 400 ? "refused" : "ok", false);
  }

  showHead(): void {
    const { writer } = this.#delivery;
    writer.head(this.#head.status, this.#delivery.headers(this.#head, true));
    if (headerOf(this.#head.headers, "content-length") === "") writer.flush();
  }

  writeHeld(): void {
    this.showHead();
    if (this.#first !== undefined) this.#delivery.write(this.#first);
    this.#first = undefined;
  }

  counts(): AnswerCounts {
    return NONE;
  }
}

const NONE: AnswerCounts = { usage: undefined, tokensSeen: undefined };
