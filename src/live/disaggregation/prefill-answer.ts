import type { Answer, AnswerCounts, AnswerHead, Delivery } from "../answer/answer.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { faultOfStatus } from "../answer/faults.ts";
import { scanFinishReasons, findUsage } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";

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

/** What an endpoint returned that computed a prompt. */
export interface Prefilled {
  /** For the endpoint that answers (`kv_transfer_params`); undefined where there is nothing to hand on. */
  readonly transfer: unknown;
  /** Prompt tokens that it found in its cache. */
  readonly cachedTokens: number | undefined;
}

/** Its whole answer, of status 200 or from 500 on, or what it failed by. */
export function readPrefilled(status: number, body: Buffer): Prefilled | Fault {
  if (status >= 500) return faultOfStatus(status, body);
  const answer = fieldsOf(body);
  if (answer === undefined) return "garbage";
  if (scanFinishReasons(body, 0, body.length) === "abort") return "draining";
  return { transfer: answer["kv_transfer_params"] ?? undefined, cachedTokens: findUsage(body)?.cachedTokens };
}

function fieldsOf(body: Buffer): Fields | undefined {
  try {
    const answer: unknown = JSON.parse(body.toString());
    return isFields(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}
