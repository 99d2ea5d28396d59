import type { PrefillStage, Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { PathEvent } from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { type PrefillHost, PrefillElsewhere } from "#core/path/prefill/prefill-elsewhere.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import type { Answer, AnswerHead, Delivery, KeptAnswer } from "../answer/answer.ts";
import type { Usage } from "../answer/answer-json.ts";
import { nowMicros } from "../base/clock.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import { BesideAttempt, type BesideAttemptRequest } from "./beside-attempt.ts";
import { bootstrapFields, answerBody, prefillBody } from "./stage-body.ts";
import { PrefillAnswer, type Prefilled } from "./prefill-answer.ts";
import { releaseTransfer, type ReleaseParts } from "./release-transfer.ts";

/** vLLM's error where the blocks of a request could not be loaded, by its default policy; others of its own it names. */
const NOT_LOADED = "Internal server error";

/** A request as the computing of its prompt elsewhere needs it. */
export interface PrefilledRequest extends ClientRequest, RequestLife {
  readonly router: PathRouter;
  readonly shared: BesideAttemptRequest["shared"] & ReleaseParts;
}

/** A prompt that is computed elsewhere, as the gateway has it: what each endpoint is sent, and what the first returned. */
export class RemotePrefill implements PrefillHost {
  readonly stage: PrefillElsewhere;
  readonly #exchange: PrefilledRequest;
  #prefilled: Prefilled | undefined;
  #beside: BesideAttempt | undefined;

  constructor(exchange: PrefilledRequest, routed: Routed, prefill: PrefillStage) {
    this.#exchange = exchange;
    this.stage = new PrefillElsewhere(routed, prefill, this);
  }

  get router(): PathRouter {
    return this.#exchange.router;
  }
  get routeId(): string {
    return this.#exchange.routeId;
  }
  now(): Micros {
    return nowMicros();
  }
  dispatch(event: PathEvent): void {
    this.#exchange.dispatch(event);
  }

  /** Where the request goes now, and with which body. `failed`: the endpoint beside did, while nothing else came. */
  next(path: string, body: Buffer, failed: (fault: Fault) => void): { endpoint: EndpointId; body: Buffer } {
    const { stage } = this;
    const { endpoint, handoff } = stage.prefill;
    if (this.#isFirst) return { endpoint, body: prefillBody(body) };
    stage.sentOn();
    const answers = stage.endpoint;
    if (handoff === "prefill-first") return { endpoint: answers, body: answerBody(body, this.#prefilled ?? {}) };
    const entry = this.#exchange.shared.directory.get(endpoint);
    const bootstrap = entry === undefined ? {} : bootstrapFields(entry);
    this.#beside = new BesideAttempt(this.#exchange, endpoint, {
      prefilled: (prefilled) => {
        if (!this.#exchange.over) this.#computed(prefilled, false);
      },
      failed: (fault) => {
        stage.prefillFailed();
        failed(fault);
      },
    });
    this.#beside.send(path, prefillBody(body, bootstrap));
    return { endpoint: answers, body: answerBody(body, { bootstrap }) };
  }

  /** The request is with the first endpoint alone. */
  get #isFirst(): boolean {
    return this.#exchange.state.kind === "ahead";
  }

  /** Reads the answer of the first endpoint; undefined where it is the client's: it turns the request down. */
  answerOf(delivery: Delivery, head: AnswerHead): Answer | undefined {
    if (!this.#isFirst || (head.status !== 200 && head.status < 500)) return undefined;
    return new PrefillAnswer(delivery, head, (prefilled) =>
      this.#computed(prefilled, prefilled.transfer !== undefined),
    );
  }

  #computed(prefilled: Prefilled, waits: boolean): void {
    this.#prefilled = prefilled;
    this.stage.prefilled(prefilled.cachedTokens, waits);
  }

  /** The endpoint that answers failed, with an error of its own where it is `kept`. */
  answerFailed(fault: Fault, kept: KeptAnswer | undefined): void {
    if (fault === "status" && kept?.body.includes(NOT_LOADED) === true) this.stage.notFetched();
  }

  /** Whether the endpoint beside the one that answers is to be left. */
  trouble(at: Micros, reads: boolean): Trouble | undefined {
    const trouble = this.#beside?.trouble(at, reads);
    if (trouble !== undefined) this.stage.prefillFailed();
    return trouble;
  }

  /**
   * What the engine that answers calls cached was fetched from the other one; what that one had cached counts.
   */
  usageOf(usage: Usage | undefined): Usage | undefined {
    if (usage === undefined || this.#prefilled === undefined) return usage;
    return { ...usage, cachedTokens: this.#prefilled.cachedTokens };
  }

  /** The attempt is over. */
  release(): void {
    this.#beside?.abort();
    this.#beside = undefined;
  }

  strand(by: EndpointId | undefined): void {
    const { shared, model } = this.#exchange;
    const { prefill, routed } = this.stage;
    const through = by === prefill.endpoint ? routed.endpoint : by;
    releaseTransfer(shared, { model, transfer: this.#prefilled?.transfer, through: through ?? routed.endpoint });
  }
}
