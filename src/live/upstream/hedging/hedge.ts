import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Micros } from "#core/base/units.ts";
import { FAULT_OF_TROUBLE } from "#core/path/wait-verdict.ts";
import type { Answer } from "../../answer/answer.ts";
import { chooseAnswer } from "../../answer/choose-answer.ts";
import { faultOfError } from "../../answer/faults.ts";
import { nowMicros } from "../../base/clock.ts";
import type { ForwardedRequest } from "../forwarded-request.ts";
import type { AnswerHeaders } from "../../http/headers.ts";
import { type Attempt, type AttemptListener, openAttempt } from "../connection/attempt.ts";
import type { TakenAttempt } from "../stage-performer.ts";
import { AttemptSigns } from "../connection/attempt-signs.ts";
import { HedgeDelivery, type HedgeVerdict } from "./hedge-delivery.ts";
import type { SentContent } from "../../request/engine-body.ts";

/**
 * A request at a second endpoint beside the one that has it. What comes is kept, at most `holdBytesMax` and one piece,
 * until it is known that an answer begins or that the attempt fails; `passTo` then goes through it again, to the end.
 */
export class Hedge implements AttemptListener, TakenAttempt {
  readonly routed: Routed;
  readonly signs: AttemptSigns;
  readonly #exchange: ForwardedRequest;
  readonly #delivery: HedgeDelivery;
  #attempt: Attempt | undefined;
  #listener: AttemptListener | undefined;
  #answer: Answer | undefined;
  /** What came so far, in order. */
  #came: ((to: AttemptListener) => void)[] = [];

  constructor(exchange: ForwardedRequest, routed: Routed, verdict: HedgeVerdict) {
    this.#exchange = exchange;
    this.routed = routed;
    this.signs = new AttemptSigns(exchange.shared, routed.endpoint, nowMicros(), exchange.stream);
    this.#delivery = new HedgeDelivery(exchange, verdict);
  }

  /** The attempt, for who takes it over. */
  get attempt(): Attempt | undefined {
    return this.#attempt;
  }

  send(request: SentContent): void {
    const { endpoint, priority } = this.routed;
    const attempt = openAttempt(this.#exchange, { ...request, endpoint, priority }, this);
    if (typeof attempt === "string") return this.#delivery.attemptFailed(attempt);
    this.#attempt = attempt;
    attempt.send();
  }

  /** Ends it, and what it holds. */
  abort(): void {
    this.#delivery.state = "over";
    this.#attempt?.abort();
    this.#came = [];
  }

  passTo(listener: AttemptListener): undefined {
    this.#delivery.state = "over";
    this.#listener = listener;
    const came = this.#came;
    this.#came = [];
    for (const one of came) one(listener);
  }

  /** As Forward does it for its own attempt. */
  sweep(at: Micros): void {
    this.signs.sweep(at, true);
    const trouble = this.signs.trouble(at);
    if (trouble !== undefined) this.#delivery.attemptFailed(FAULT_OF_TROUBLE[trouble.kind]);
  }

  answerStarted(status: number, headers: AnswerHeaders): void {
    if (this.#listener !== undefined) return this.#listener.answerStarted(status, headers);
    this.#came.push((to) => to.answerStarted(status, headers));
    this.#answer = chooseAnswer(this.#delivery, { status, headers });
    if (this.#answer === undefined) this.#delivery.attemptFailed("garbage");
  }

  answerData(chunk: Buffer): void {
    if (this.#listener !== undefined) return this.#listener.answerData(chunk);
    this.signs.alive();
    this.#came.push((to) => to.answerData(chunk));
    this.#read((answer) => answer.data(chunk));
  }

  answerEnded(): void {
    if (this.#listener !== undefined) return this.#listener.answerEnded();
    this.#came.push((to) => to.answerEnded());
    this.#read((answer) => answer.ended());
  }

  attemptReconnects(): void {
    this.#exchange.shared.counters.reconnects++;
  }

  attemptBroke(error: Error): void {
    if (this.#listener !== undefined) return this.#listener.attemptBroke(error);
    const fault: Fault = this.#answer !== undefined ? "cut" : (faultOfError(error) ?? "connect");
    this.#delivery.attemptFailed(fault);
  }

  /** A defect ends the request, as one of the first attempt does. */
  #read(read: (answer: Answer) => void): void {
    if (this.#answer === undefined || this.#delivery.state === "over") return;
    try {
      read(this.#answer);
    } catch (error) {
      this.#exchange.bug(error);
    }
  }
}
