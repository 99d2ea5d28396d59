import type { RoutedPrefill, Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { PathEvent } from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { type PrefillHost, PrefillElsewhere } from "#core/path/prefill/prefill-elsewhere.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import type { Answer, AnswerHead, Delivery, KeptAnswer } from "../answer/answer.ts";
import type { Usage } from "../answer/answer-json.ts";
import { isFailedStatus } from "../answer/faults.ts";
import { nowMicros } from "../base/clock.ts";
import { BesideAttempt } from "./beside-attempt.ts";
import { answerBody, bootstrapFields, PrefillAnswer, prefillBody, type Prefilled } from "./prefill-messages.ts";
import type { AheadOf, AheadPart } from "../upstream/stage-performer.ts";
import type { ForwardedRequest } from "../upstream/forwarded-request.ts";

/** vLLM's error where the blocks of a request could not be loaded, by its default policy; others of its own it names. */
const NOT_LOADED = "Internal server error";

/** A prompt that is computed elsewhere, as the gateway has it: what each endpoint is sent, and what the first returned. */
class RemotePrefill implements PrefillHost, AheadPart {
  readonly stage: PrefillElsewhere;
  readonly #exchange: ForwardedRequest;
  readonly #releases: Releases;
  #prefilled: Prefilled | undefined;
  #beside: BesideAttempt | undefined;

  constructor(exchange: ForwardedRequest, routed: Routed, prefill: RoutedPrefill, releases: Releases) {
    this.#exchange = exchange;
    this.#releases = releases;
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

  next(path: string, body: Buffer, failed: (fault: Fault) => void): { endpoint: EndpointId; body: Buffer } {
    const { stage } = this;
    const { endpoint } = stage.prefill;
    if (this.#isFirst) return { endpoint, body: prefillBody(body) };
    stage.sentOn();
    const answers = stage.endpoint;
    if (!stage.isTogether) return { endpoint: answers, body: answerBody(body, this.#prefilled ?? {}) };
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

  answerOf(delivery: Delivery, head: AnswerHead): Answer | undefined {
    if (!this.#isFirst || (head.status !== 200 && !isFailedStatus(head.status))) return undefined;
    return new PrefillAnswer(delivery, head, (prefilled) =>
      this.#computed(prefilled, prefilled.transfer !== undefined),
    );
  }

  #computed(prefilled: Prefilled, waits: boolean): void {
    this.#prefilled = prefilled;
    this.stage.prefilled(prefilled.cachedTokens, waits);
  }

  answerFailed(fault: Fault, kept: KeptAnswer | undefined): void {
    if (fault === "status" && kept?.body.includes(NOT_LOADED) === true) this.stage.notFetched();
  }

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

  release(): void {
    this.#beside?.abort();
    this.#beside = undefined;
  }

  strand(by: EndpointId | undefined): void {
    const { shared, model } = this.#exchange;
    const { prefill, routed } = this.stage;
    const through = by === prefill.endpoint ? routed.endpoint : by;
    releaseTransfer(shared, this.#releases, {
      model,
      transfer: this.#prefilled?.transfer,
      through: through ?? routed.endpoint,
    });
  }
}

/** For one gateway. */
export function remotePrefills(): AheadOf {
  const releases: Releases = { underWay: 0 };
  return (exchange, routed) =>
    routed.prefill === undefined ? undefined : new RemotePrefill(exchange, routed, routed.prefill, releases);
}

const MILLIS_MAX = 2_000;
/** Releases under way at once; beyond them the engines' own timeouts free the blocks. */
const UNDER_WAY_MAX = 64;

/** Of all requests of a gateway. */
interface Releases {
  /** Questions under way that free blocks which nobody fetched. */
  underWay: number;
}

interface StrandedTransfer {
  readonly model: string;
  /** What the prefill endpoint returned. */
  readonly transfer: unknown;
  /** An endpoint that could have fetched the blocks. */
  readonly through: EndpointId;
}

/**
 * Has an engine free the blocks that it keeps for another one which never came for them. vLLM has no call for that: an
 * engine that turns down a request for them notifies it, and here it is asked for an answer of no tokens, which it turns
 * down. Best effort: where nobody is left to ask, the engine's own timeout frees them.
 */
function releaseTransfer(
  { directory, counters }: ForwardedRequest["shared"],
  releases: Releases,
  { model, transfer, through }: StrandedTransfer,
): void {
  const entry = directory.get(through);
  if (entry?.state !== "ready" || releases.underWay >= UNDER_WAY_MAX) {
    counters.transfersStranded++;
    return;
  }
  releases.underWay++;
  const body = JSON.stringify({ model, prompt: [0], max_tokens: 0, kv_transfer_params: transfer });
  fetch(`${entry.url}/v1/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(entry.apiKey !== undefined && { authorization: `Bearer ${entry.apiKey}` }),
    },
    body,
    signal: AbortSignal.timeout(MILLIS_MAX),
  })
    .then(async (answer) => {
      await answer.body?.cancel();
      counters.transfersReleased++;
    })
    .catch(() => {
      counters.transfersStranded++;
    })
    .finally(() => {
      releases.underWay--;
    });
}
