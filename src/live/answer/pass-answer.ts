import type { Fault } from "#core/endpoint/fault.ts";

import type { Answer, AnswerHead, Delivery } from "./answer.ts";
import { headerOf } from "../request/headers.ts";

/** Carries an answer through unread: refusals of the engine, binary bodies, and answers too long to hold. */
export class PassAnswer implements Answer {
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;

  constructor(delivery: Delivery, head: AnswerHead) {
    this.#delivery = delivery;
    this.#head = head;
  }

  data(chunk: Buffer): void {
    this.#sendHead();
    this.#delivery.write(chunk);
  }

  ended(): void {
    this.#sendHead();
    this.#delivery.writer.end();
    const refused = this.#head.status >= 400;
    this.#delivery.finished({ outcome: refused ? "refused" : "ok", usage: undefined, tokensSeen: undefined });
  }

  /** The head promised a whole body; only a broken connection tells the client that it is not. */
  broke(fault: Fault): void {
    const { writer, counters } = this.#delivery;
    if (!writer.headSent) return this.#delivery.attemptFailed(fault);
    counters.cuts++;
    writer.destroy();
    this.#delivery.finished({
      outcome: fault === "timeout" ? "timeout" : "failed",
      usage: undefined,
      tokensSeen: undefined,
      fault,
    });
  }

  #sendHead(): void {
    const { writer } = this.#delivery;
    if (writer.headSent) return;
    writer.head(this.#head.status, this.#delivery.headers(this.#head, true));
    if (headerOf(this.#head.headers, "content-length") === "") writer.flush();
  }
}
