import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { type BrokenPart, Continuation, type ContinuationHost } from "#core/path/continuation/continuation.ts";
import { type PathEvent, REROUTED } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { PathStage } from "#core/path/stage.ts";
import { type AttemptSubject, continuedEvent } from "../log/attempt-events.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import type { SentContent } from "../request/engine-body.ts";
import type { StreamKeeping } from "./keep-stream.ts";
import { continuedBody, continuedText } from "./continued-body.ts";
import { withFields } from "../http/request-body.ts";
import type { KeptStream } from "./kept-stream.ts";
import type { RepeatableStream } from "./repeatable-stream.ts";
import { isFields } from "../base/fields.ts";

/** A request as the continuation of its stream needs it. */
export interface ContinuedRequest extends ClientRequest, RequestLife {
  readonly router: PathRouter;
  readonly shared: {
    readonly counters: GatewayCounters;
    readonly observe: RequestObserver;
    readonly directory: Pick<EndpointDirectory, "get">;
  };
}

/** Its attempts, of which the next one gets another content. */
interface ContinuedAttempts extends AttemptSubject {
  /** As the first endpoint got it. */
  readonly firstBody: Buffer;
  /** What is sent next. */
  content: SentContent;
  continueAt(routed: Routed): void;
}

/** The stage of a request whose stream can go on elsewhere; undefined of others. */
export function continuationOf(
  exchange: ContinuedRequest & Pick<StreamKeeping, "kept" | "repeatable">,
  forward: ContinuedAttempts,
): PathStage | undefined {
  const { kept, repeatable } = exchange;
  if (repeatable !== undefined) return new Continuation(new RepeatedStream(exchange, repeatable, forward));
  return kept && new Continuation(new ContinuedStream(exchange, kept, forward));
}

/** What both ways have of their request. */
class StreamHost {
  protected readonly exchange: ContinuedRequest;
  protected readonly forward: ContinuedAttempts;

  constructor(exchange: ContinuedRequest, forward: ContinuedAttempts) {
    this.exchange = exchange;
    this.forward = forward;
  }

  get router(): PathRouter {
    return this.exchange.router;
  }
  get routeId(): string {
    return this.exchange.routeId;
  }

  wentOn(fault: Fault): void {
    countUp(this.exchange.shared.counters.continuations, fault);
  }

  denied(why: GiveUpReason): void {
    this.count(why);
  }

  protected count(why: string): void {
    countUp(this.exchange.shared.counters.continuationsDenied, why);
  }
}

/** A stream whose tokens or text are kept: another endpoint makes what is missing. */
class ContinuedStream extends StreamHost implements ContinuationHost {
  readonly #kept: KeptStream;

  constructor(exchange: ContinuedRequest, kept: KeptStream, forward: ContinuedAttempts) {
    super(exchange, forward);
    this.#kept = kept;
  }

  broken(): BrokenPart | undefined {
    const kept = this.#kept;
    if (kept.unfit !== undefined) {
      this.count(kept.unfit);
      return undefined;
    }
    const outputTokens = this.#outputTokens;
    const answerHashes = kept.blocksOf(outputTokens);
    return { outputTokens, ...(answerHashes && { answerHashes }), ...(kept.text !== undefined && { byText: true }) };
  }

  get #outputTokens(): number {
    const { seam, unsettled } = this.#kept;
    return seam.tokens + (unsettled?.length ?? 0);
  }

  /** "later" where that endpoint is asked first at which token it goes on. */
  goOn(decision: Routed, fault: Fault): PathEvent | "later" {
    const { exchange, forward } = this;
    const { shared, model } = exchange;
    const kept = this.#kept;
    const byText = kept.text !== undefined;
    shared.observe.fault?.(continuedEvent(forward, fault, decision.endpoint, this.#outputTokens, byText));
    if (byText) countUp(shared.counters.continuationsByText, fault);
    forward.continueAt(decision);
    const entry = kept.unsettled && shared.directory.get(decision.endpoint);
    if (entry === undefined) return this.#resumed();
    settleSeam(entry, model, kept)
      .then((isSettled) => {
        // The client may have left.
        if (exchange.state.kind !== "severed") return;
        if (!isSettled) this.count("seam");
        exchange.dispatch(isSettled ? this.#resumed() : { kind: "denied", why: "no-endpoint" });
      })
      .catch((error: unknown) => exchange.bug(error));
    return "later";
  }

  #resumed(): PathEvent {
    const { shared, path, prompt } = this.exchange;
    const kept = this.#kept;
    const { seam } = kept;
    const sent =
      kept.text === undefined
        ? { path: COMPLETIONS, body: continuedBody(kept, seam) }
        : { path, body: continuedText(kept, kept.text, this.forward.firstBody) };
    kept.resume();
    shared.counters.continuationTokens += (kept.promptTokens || prompt.promptTokens) + seam.tokens;
    this.forward.content = sent;
    return REROUTED;
  }
}

/** Another endpoint makes the answer from its beginning: for the router it has the request as it came. */
class RepeatedStream extends StreamHost implements ContinuationHost {
  readonly #stream: RepeatableStream;

  constructor(exchange: ContinuedRequest, stream: RepeatableStream, forward: ContinuedAttempts) {
    super(exchange, forward);
    this.#stream = stream;
  }

  broken(): BrokenPart | undefined {
    const { unfit } = this.#stream;
    if (unfit === undefined) return { outputTokens: 0 };
    this.count(unfit);
    return undefined;
  }

  goOn(decision: Routed, fault: Fault): PathEvent {
    const { shared, path, prompt } = this.exchange;
    const { forward } = this;
    shared.observe.fault?.(continuedEvent(forward, fault, decision.endpoint, 0, false));
    forward.continueAt(decision);
    shared.counters.continuationTokens += prompt.promptTokens;
    forward.content = { path, body: repeatedBody(this.#stream, forward.firstBody) };
    return REROUTED;
  }
}

/** The request as it came. vLLM stores a response under the id that its request brings. */
function repeatedBody({ dialect, first }: RepeatableStream, body: Buffer): Buffer {
  const id = first?.["id"];
  return dialect === "responses" && typeof id === "string" ? withFields(body, { request_id: id }) : body;
}

const COMPLETIONS = "/v1/completions";

/** Longest that an engine may take to write a few tokens as text. */
const MILLIS_MAX = 2_000;
/** Tokens that can be held back: a character's bytes but the last. */
const HELD_BACK_MAX = 3;

/**
 * Finds the seam of a stream whose last tokens may have text that did not go out: what it is, and whether the last of them
 * end inside a character, the engine that is to go on is asked (vLLM's `/detokenize`). False where it does not answer, or
 * they are no text.
 */
async function settleSeam(entry: EndpointEntry, model: string, kept: KeptStream): Promise<boolean> {
  const tokens = kept.unsettled;
  if (tokens === undefined) return true;
  for (let heldBack = 0; heldBack <= HELD_BACK_MAX && heldBack < tokens.length; heldBack++) {
    const text = await textOf(entry, model, tokens.subarray(0, tokens.length - heldBack));
    if (text === undefined) return false;
    if (text.endsWith(REPLACEMENT)) continue;
    return kept.settle(heldBack, text);
  }
  return false;
}

const REPLACEMENT = "\ufffd";

async function textOf({ url, apiKey }: EndpointEntry, model: string, tokens: Int32Array): Promise<string | undefined> {
  try {
    const answer = await fetch(`${url}/detokenize`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify({ model, tokens: [...tokens] }),
      signal: AbortSignal.timeout(MILLIS_MAX),
    });
    const body: unknown = answer.ok ? await answer.json() : undefined;
    return isFields(body) && typeof body["prompt"] === "string" ? body["prompt"] : undefined;
  } catch {
    return undefined;
  }
}
