import { giveBack } from "../base/give-back.ts";
import { isAborted, isUnproven } from "./aborted-answer.ts";
import type { Answer, AnswerCounts, AnswerHead, Delivery } from "./answer.ts";
import { faultOfStatus, isFailedStatus } from "./faults.ts";
import { ownCachedTokens, outerText, type Usage, findUsage } from "./answer-json.ts";
import { headerOf } from "../http/headers.ts";

/**
 * Holds an answer that comes in one piece until it is whole, so that one that is no good can still be had from another
 * endpoint: an error of the engine, a text cut off by its end, or no JSON at all. An answer longer than the bound goes
 * through as it comes.
 */
export class WholeAnswer implements Answer {
  readonly carriage = "whole";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #bytesMax: number;
  /** Memory of what came so far: the first piece, where it is all. */
  #body: Buffer = EMPTY;
  #bytes = 0;
  /** A piece that was copied, which undici may still be at. */
  #copied: Buffer | undefined;
  #usage: Usage | undefined;
  #responseId: string | undefined;

  constructor(delivery: Delivery, head: AnswerHead) {
    this.#delivery = delivery;
    this.#head = head;
    const { answerBytesInspected, errorBytesKept } = delivery.limits;
    this.#bytesMax = isFailedStatus(head.status) ? errorBytesKept : answerBytesInspected;
  }

  data(chunk: Buffer): void {
    if (this.#copied !== undefined) giveBack(this.#copied);
    this.#copied = undefined;
    if (this.#bytes + chunk.length <= this.#bytesMax) return this.#keep(chunk);
    if (isFailedStatus(this.#head.status)) return this.#delivery.attemptFailed(faultOfStatus(this.#head.status, EMPTY));
    this.#delivery.counters.uninspected++;
    const before = this.#body.subarray(0, this.#bytes);
    this.#delivery.letThrough(this.#head, before.length > 0 ? [before, chunk] : [chunk]);
  }

  /** Copied as it comes: a large answer, copied in one go as it ends, would keep everybody waiting. */
  #keep(chunk: Buffer): void {
    const bytes = this.#bytes + chunk.length;
    if (this.#bytes === 0) this.#body = chunk;
    else {
      if (bytes > this.#body.length) this.#grow(bytes);
      this.#body.set(chunk, this.#bytes);
      this.#copied = chunk;
    }
    this.#bytes = bytes;
  }

  #grow(bytes: number): void {
    const declared = Number(headerOf(this.#head.headers, "content-length"));
    const room = declared >= bytes && declared <= this.#bytesMax ? declared : GROWTH * bytes;
    const before = this.#body;
    this.#body = Buffer.allocUnsafeSlow(room);
    this.#body.set(before.subarray(0, this.#bytes));
    giveBack(before);
  }

  ended(): void {
    const { status } = this.#head;
    const body = (this.#body = this.#body.subarray(0, this.#bytes));
    if (isFailedStatus(status)) {
      return this.#delivery.attemptFailed(faultOfStatus(status, body), { ...this.#head, body });
    }
    if (!looksLikeJson(body) && this.#delivery.dialect !== "other") {
      return this.#delivery.attemptFailed("garbage");
    }
    const usage = findUsage(body);
    const { dialect } = this.#delivery;
    if (isAborted(dialect, body, usage)) this.#delivery.attemptFailed("draining");
    else if (!isUnproven(dialect, body)) this.#complete(body, usage);
    else {
      this.#delivery.proveEnd((isWhole) => {
        if (isWhole) this.#complete(body, usage);
        else this.#delivery.attemptFailed("draining");
      });
    }
  }

  #complete(body: Buffer, usage: Usage | undefined): void {
    this.#usage = usage;
    if (this.#delivery.dialect === "responses") this.#responseId = outerText(body, "id");
    const { judge } = this.#delivery;
    if (judge !== undefined) this.#body = judge.readWhole(body);
    this.#delivery.completed("ok", false);
  }

  /** Nothing of it goes out ahead of its end. */
  showHead(): void {}

  writeHeld(): void {
    const { cachedTokens } = this.#delivery;
    const whole = this.#delivery.named(this.#body);
    const body = cachedTokens === undefined ? whole : ownCachedTokens(whole, cachedTokens);
    const headers = this.#delivery.headers(this.#head, false, this.#usage?.promptTokens);
    headers.push("content-length", String(body.length));
    const { answerReader, writer } = this.#delivery;
    writer.whole(this.#head.status, headers, body, answerReader === undefined);
    answerReader?.whole(body);
  }

  counts(): AnswerCounts {
    return { usage: this.#usage, tokensSeen: undefined, responseId: this.#responseId };
  }
}

const EMPTY = Buffer.alloc(0);
const GROWTH = 2;

/** An object, from its first to its last byte; what is between is the engine's word. */
function looksLikeJson(body: Buffer): boolean {
  let first = 0;
  let last = body.length - 1;
  while (first < last && body[first]! <= 0x20) first++;
  while (last > first && body[last]! <= 0x20) last--;
  const open = body[first];
  return (open === 0x7b && body[last] === 0x7d) || (open === 0x5b && body[last] === 0x5d);
}
