import type { Answer, AnswerHead, Delivery } from "./answer.ts";
import { isFailedStatus } from "./faults.ts";
import { UNSERVED } from "../http/unserved-refusal.ts";
import { headerOf, isMediaType } from "../http/headers.ts";
import type { Dialect } from "../http/route.ts";
import { PassAnswer } from "./pass-answer.ts";
import { StreamAnswer } from "./stream-answer.ts";
import { UnservedAnswer } from "./unserved-answer.ts";
import { WholeAnswer } from "./whole-answer.ts";

/** Chooses how an answer is to be carried, by its head and its request's id; undefined where it is none. */
export type AnswerChooser = (delivery: Delivery, head: AnswerHead, requestId: string) => Answer | undefined;

/**
 * How an answer is to be carried, by its head; undefined where it is no answer to such a request.
 *
 * An answer that does not fit a head that is already out is none either; that happens only after `holdMillis`, when
 * another endpoint answers a stream's retry with something else.
 */
export function chooseAnswer(delivery: Delivery, head: AnswerHead): Answer | undefined {
  const { status, headers } = head;
  const type = headerOf(headers, "content-type");
  if (!isStatusOf(delivery.dialect, status)) return undefined;
  const readable = headerOf(headers, "content-encoding") === "";
  const streams = readable && status === 200 && isMediaType(type, "text/event-stream");
  if (delivery.writer.headSent && !streams) return undefined;
  if (streams) return new StreamAnswer(delivery, head);
  if (isFailedStatus(status)) return new WholeAnswer(delivery, head);
  if (UNSERVED.has(status) && readable && isMediaType(type, "application/json"))
    return new UnservedAnswer(delivery, head);
  if (status !== 200 || !readable) return new PassAnswer(delivery, head);
  if (isMediaType(type, "application/json")) return new WholeAnswer(delivery, head);
  return delivery.dialect === "other" ? new PassAnswer(delivery, head) : undefined;
}

/** What inference answers has a body, and nobody knows codes from 600 on. */
function isStatusOf(dialect: Dialect, status: number): boolean {
  return status < 600 && (dialect === "other" || !BODILESS.has(status));
}

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);
