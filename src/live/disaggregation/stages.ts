import type { PrefillStage, Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { FailedStage } from "#core/path/path-router.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import type { Answer, AnswerHead, Delivery, KeptAnswer } from "../answer/answer.ts";
import type { Usage } from "../answer/usage.ts";
import { nowMicros } from "../clock.ts";
import type { Exchange } from "../request/exchange.ts";
import { PREFILLED } from "#core/path/path-event.ts";
import { BesideAttempt } from "./beside-attempt.ts";
import { bootstrapFields } from "./bootstrap.ts";
import { PrefillAnswer } from "./prefill-answer.ts";
import type { Prefilled } from "./read-prefilled.ts";
import { releaseTransfer } from "./release-transfer.ts";
import { answerBody, prefillBody } from "./stage-body.ts";

/** vLLM's error where the blocks of a request could not be loaded, by its default policy; others of its own it names. */
const NOT_LOADED = "Internal server error";

/**
 * The two stages of a decision that has one endpoint compute a prompt and another one answer: what each is sent, what comes
 * back from the first, and what of it is to be given up where the second never fetched it.
 */
export class Stages {
  readonly #exchange: Exchange;
  readonly #routed: Routed;
  readonly #prefill: PrefillStage;
  /** Which of both was sent last; `together` they are one. */
  #underWay: "prefill" | "answer" = "prefill";
  #failed: FailedStage | undefined;
  #prefilled: Prefilled | undefined;
  #beside: BesideAttempt | undefined;
  /** Blocks wait at the prefill endpoint for somebody to fetch them. */
  #waits = false;

  constructor(exchange: Exchange, routed: Routed, prefill: PrefillStage) {
    this.#exchange = exchange;
    this.#routed = routed;
    this.#prefill = prefill;
  }

  /** The endpoint that the request is with. */
  get endpoint(): EndpointId {
    return this.#underWay === "prefill" ? this.#prefill.endpoint : this.#routed.endpoint;
  }

  /** What failed, for the router. */
  get failed(): FailedStage {
    return this.#failed ?? this.#underWay;
  }

  /** Where the request goes now, and with which body. `failed`: the endpoint beside did, while nothing else came. */
  next(path: string, body: Buffer, failed: (fault: Fault) => void): { endpoint: EndpointId; body: Buffer } {
    const { endpoint, handoff } = this.#prefill;
    if (this.#exchange.state.kind === "prefilling") return { endpoint, body: prefillBody(body) };
    this.#underWay = "answer";
    const answers = this.#routed.endpoint;
    if (handoff === "prefill-first") return { endpoint: answers, body: answerBody(body, this.#prefilled ?? {}) };
    const entry = this.#exchange.context.directory.get(endpoint);
    const bootstrap = entry === undefined ? {} : bootstrapFields(entry);
    this.#beside = new BesideAttempt(this.#exchange, endpoint, {
      prefilled: (prefilled) => this.#besidePrefilled(prefilled),
      failed: (fault) => {
        this.#failed = "prefill";
        failed(fault);
      },
    });
    this.#beside.send(path, prefillBody(body, bootstrap));
    return { endpoint: answers, body: answerBody(body, { bootstrap }) };
  }

  /** Reads the answer of the first stage; undefined where it is the client's: it turns the request down. */
  answerOf(delivery: Delivery, head: AnswerHead): Answer | undefined {
    if (this.#exchange.state.kind !== "prefilling" || (head.status !== 200 && head.status < 500)) return undefined;
    return new PrefillAnswer(delivery, head, (prefilled) => {
      this.#prefilled = prefilled;
      this.#waits = prefilled.transfer !== undefined;
      this.#exchange.dispatch(PREFILLED);
    });
  }

  report(): void {
    const { context, routeId: requestId } = this.#exchange;
    const cachedTokens = this.#prefilled?.cachedTokens;
    context.router.accept({ kind: "prefill-finished", at: nowMicros(), requestId, cachedTokens });
  }

  /** The endpoint that answers failed, with an error of its own where it is `kept`. */
  answerFailed(fault: Fault, kept: KeptAnswer | undefined): void {
    if (this.#underWay === "prefill" || !this.#waits || fault !== "status") return;
    if (kept?.body.includes(NOT_LOADED) === true) this.#failed = "transfer";
  }

  /** It has the blocks: it answers. */
  fetched(): void {
    this.#waits = false;
  }

  /** Whether the endpoint beside the one that answers is to be left. */
  trouble(at: Micros, reads: boolean): Trouble | undefined {
    const trouble = this.#beside?.trouble(at, reads);
    if (trouble !== undefined) this.#failed = "prefill";
    return trouble;
  }

  /**
   * The request is over. What the engine that answers calls cached was fetched from the other one; what that one had cached
   * counts.
   */
  ended(outcome: Outcome, usage: Usage | undefined): Usage | undefined {
    if (outcome === "ok") this.fetched();
    this.close(undefined);
    if (usage === undefined || this.#prefilled === undefined) return usage;
    return { ...usage, cachedTokens: this.#prefilled.cachedTokens };
  }

  /** Prompt tokens that the endpoint which computed it had cached, once that is known. */
  get cachedTokens(): number | undefined {
    return this.#prefilled?.cachedTokens;
  }

  /** The attempt is over. */
  release(): void {
    this.#beside?.abort();
    this.#beside = undefined;
  }

  /**
   * Nobody will fetch the blocks that wait, so the engine that has them is to free them; `by`: who answers now, if
   * anybody.
   */
  close(by: EndpointId | undefined): void {
    this.release();
    if (!this.#waits) return;
    this.#waits = false;
    const { context, model } = this.#exchange;
    const through = by === this.#prefill.endpoint ? this.#routed.endpoint : by;
    releaseTransfer(context, { model, transfer: this.#prefilled?.transfer, through: through ?? this.#routed.endpoint });
  }

  #besidePrefilled(prefilled: Prefilled): void {
    this.#prefilled = prefilled;
    if (!this.#exchange.over) this.report();
  }
}
