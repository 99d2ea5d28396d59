import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import {
  type BrokenPart,
  CONTINUATION,
  Continuation,
  type ContinuationHost,
} from "#core/path/continuation/continuation.ts";
import { type PathEvent, REROUTED } from "#core/path/path-event.ts";
import type { GiveUpReason, PathRouter } from "#core/path/path-router.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { Answer, AnswerHead, Delivery } from "../answer/answer.ts";
import type { Usage } from "../answer/answer-json.ts";
import type { AnswerReport } from "../answer/answer-reader.ts";
import type { KeepableRequest, KeepStream, KeptAttempts, StreamKeeper } from "../answer/stream-keeper.ts";
import { continuedEvent } from "../log/attempt-events.ts";
import { isFields } from "../base/fields.ts";
import { countUp } from "../base/gateway-counters.ts";
import { headerOf, isMediaType } from "../http/headers.ts";
import { withFields } from "../http/request-body.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import { continuationPlan, fieldsToRepeat } from "./continuation-plan.ts";
import { closingEvents, ContinuedAnswer } from "./continued-answer.ts";
import { KeptStream, type Seam, type UnfitStream } from "./kept-stream.ts";
import { RepeatableStream, RepeatedAnswer } from "./repeated-stream.ts";

/** How streams are kept, by the configuration's keys of clients. */
export interface ContinuationOptions {
  /** Keeps the tokens of streams, so that one that breaks can go on at another endpoint. */
  readonly continueStreams?: boolean;
  /** Where an engine sends no ids of them, one goes on behind its text. */
  readonly continueByText?: boolean;
  /** Gives a seed to streams that could go on no other way. */
  readonly seedStreams?: boolean;
}

/**
 * Begins to keep the stream that a request asks for, where it can go on elsewhere should it break; or notes why it cannot.
 * Returns what the engine has to get beside the client's fields: that it sends token ids, or a seed.
 */
function keepStream(
  { continueStreams: keeps = false, continueByText: byText = false, seedStreams: seeds = false }: ContinuationOptions,
  exchange: KeepableRequest,
  parsed: ParsedRequest,
  prompt: TokenizedPrompt,
): object | undefined {
  const { limits, route, router } = exchange;
  if (!keeps || limits.continuationsMax === 0) return undefined;
  const { dialect } = route;
  const shared = router.sharedOf(CONTINUATION);
  const hold = (bytes: number): boolean => shared.hold(bytes, limits.continuationBytesKept);
  const plan = continuationPlan(parsed, dialect, () => modelTokensMax(exchange));
  if (plan === undefined || typeof plan === "string") {
    const fields = dialect === "other" ? undefined : fieldsToRepeat(parsed, dialect, seeds);
    if (fields !== undefined && dialect !== "other") {
      const textMax = limits.continuationTokensKept * UNITS_PER_TOKEN;
      exchange.keeper = new RepeatedStream(exchange, new RepeatableStream({ dialect, textMax, hold }));
    } else if (parsed.stream)
      exchange.keeper = new UnfitToKeep(exchange, plan ?? (dialect === "other" ? "route" : "sampled"));
    return fields !== undefined && Object.keys(fields).length > 0 ? fields : undefined;
  }
  if (prompt.promptTokens > limits.continuationTokensKept) {
    exchange.keeper = new UnfitToKeep(exchange, "long");
    return undefined;
  }
  const kept = new KeptStream({
    plan,
    byText: byText && plan.fitsText ? { promptTokens: prompt.exact ? prompt.promptTokens : 0 } : undefined,
    end: prompt.end,
    tokensMax: limits.continuationTokensKept,
    hold,
  });
  exchange.keeper = new ContinuedStream(exchange, kept);
  return plan.showsIds ? undefined : RETURN_IDS;
}

/** Keeps streams as they are configured to be. */
export function streamKeeper(options: ContinuationOptions): KeepStream {
  return (exchange, parsed, prompt) => keepStream(options, exchange, parsed, prompt);
}

/** The stage of a request whose stream is kept, if it is. */
export function keptStream({ keeper }: KeepableRequest, attempts: KeptAttempts): PathStage | undefined {
  return keeper?.stage(attempts);
}

const RETURN_IDS = { return_token_ids: true };

/** Of text that is kept of an answer, for each token that may be. */
const UNITS_PER_TOKEN = 6;

/** The model's length as some endpoint that serves it states it. */
function modelTokensMax({ shared, model }: KeepableRequest): number | undefined {
  for (const { models } of shared.directory.all()) {
    const stated = models.find(({ id }) => id === model)?.["max_model_len"];
    if (typeof stated === "number" && Number.isSafeInteger(stated)) return stated;
  }
  return undefined;
}

/** A stream that cannot go on; what all ways have of their request. */
class UnfitToKeep implements StreamKeeper {
  protected readonly exchange: KeepableRequest;
  readonly #why: UnfitStream | undefined;
  readonly tokens: KeptStream | undefined = undefined;
  readonly events: RepeatableStream | undefined = undefined;

  constructor(exchange: KeepableRequest, why?: UnfitStream) {
    this.exchange = exchange;
    this.#why = why;
  }

  get unfit(): UnfitStream | undefined {
    return this.#why;
  }
  get continuedTokens(): number {
    return 0;
  }

  stage(_attempts: KeptAttempts): PathStage | undefined {
    return undefined;
  }

  goesOn(_delivery: Delivery, _head: AnswerHead): Answer | undefined {
    return undefined;
  }

  missing(_tokensSeen: number): string | undefined {
    return undefined;
  }

  report(_usage: Usage | undefined): AnswerReport | undefined {
    return undefined;
  }

  cut(why: string | undefined = this.unfit): void {
    if (why !== undefined) countUp(this.exchange.shared.counters.continuationsDenied, why);
  }

  reset(): void {}
  close(): void {}
}

/** What both ways have of a stream that can go on. */
abstract class StreamHost extends UnfitToKeep {
  #attempts: KeptAttempts | undefined;

  get router(): PathRouter {
    return this.exchange.router;
  }
  get routeId(): string {
    return this.exchange.routeId;
  }
  protected get attempts(): KeptAttempts {
    return this.#attempts!;
  }

  protected host(attempts: KeptAttempts, host: ContinuationHost): PathStage {
    this.#attempts = attempts;
    return new Continuation(host);
  }

  wentOn(fault: Fault): void {
    countUp(this.exchange.shared.counters.continuations, fault);
  }

  denied(why: GiveUpReason): void {
    this.cut(why);
  }
}

/** A stream whose tokens or text are kept: another endpoint makes what is missing. */
class ContinuedStream extends StreamHost implements ContinuationHost {
  override readonly tokens: KeptStream;

  constructor(exchange: KeepableRequest, kept: KeptStream) {
    super(exchange);
    this.tokens = kept;
  }

  override get unfit(): UnfitStream | undefined {
    return this.tokens.unfit;
  }
  override get continuedTokens(): number {
    return this.tokens.continuedTokens;
  }

  override stage(attempts: KeptAttempts): PathStage {
    return this.host(attempts, this);
  }

  override goesOn(delivery: Delivery, head: AnswerHead): Answer | undefined {
    return isStream(head) ? new ContinuedAnswer(delivery, this.tokens, this.exchange.prompt.promptTokens) : undefined;
  }

  override missing(tokensSeen: number): string | undefined {
    return this.tokens.ended ? closingEvents(this.tokens, this.exchange.prompt.promptTokens, tokensSeen) : undefined;
  }

  /**
   * Undefined where whoever reads the answer for the prefix index finds its blocks out, or its tokens are not the engine's
   * own.
   */
  override report(usage: Usage | undefined): AnswerReport | undefined {
    const kept = this.tokens;
    const { shared, prompt, answerReader } = this.exchange;
    if (kept.text !== undefined || kept.promptTokens !== prompt.promptTokens) return undefined;
    const isKnown = kept.continuations > 0 || (shared.answersIndexed !== "off" && answerReader === undefined);
    if (!isKnown || usage?.outputTokens !== kept.outputTokens) return undefined;
    const report = kept.answer();
    if (report.answerHashes !== undefined) countUp(shared.counters.answersKnown, "ids");
    return report;
  }

  override reset(): void {
    this.tokens.reset();
  }

  override close(): void {
    this.tokens.close();
  }

  broken(): BrokenPart | undefined {
    const kept = this.tokens;
    if (kept.unfit !== undefined) {
      this.cut(kept.unfit);
      return undefined;
    }
    const outputTokens = this.#outputTokens;
    const answerHashes = kept.blocksOf(outputTokens);
    return { outputTokens, ...(answerHashes && { answerHashes }), ...(kept.text !== undefined && { byText: true }) };
  }

  get #outputTokens(): number {
    const { seam, unsettled } = this.tokens;
    return seam.tokens + (unsettled?.length ?? 0);
  }

  /** "later" where that endpoint is asked first at which token it goes on. */
  goOn(decision: Routed, fault: Fault): PathEvent | "later" {
    const { exchange, attempts } = this;
    const { shared, model } = exchange;
    const kept = this.tokens;
    const byText = kept.text !== undefined;
    shared.observe.fault?.(continuedEvent(attempts, fault, decision.endpoint, this.#outputTokens, byText));
    if (byText) countUp(shared.counters.continuationsByText, fault);
    attempts.continueAt(decision);
    const entry = kept.unsettled && shared.directory.get(decision.endpoint);
    if (entry === undefined) return this.#resumed();
    settleSeam(kept, (tokens) => shared.tokenTexts.of(entry, model, tokens))
      .then((isSettled) => {
        // The client may have left.
        if (exchange.state.kind !== "severed") return;
        if (!isSettled) this.cut("seam");
        exchange.dispatch(isSettled ? this.#resumed() : { kind: "denied", why: "no-endpoint" });
      })
      .catch((error: unknown) => exchange.bug(error));
    return "later";
  }

  #resumed(): PathEvent {
    const { shared, path, prompt } = this.exchange;
    const kept = this.tokens;
    const { seam } = kept;
    const sent =
      kept.text === undefined
        ? { path: COMPLETIONS, body: continuedBody(kept, seam) }
        : { path, body: continuedText(kept, kept.text, this.attempts.firstBody) };
    kept.resume();
    shared.counters.continuationTokens += (kept.promptTokens || prompt.promptTokens) + seam.tokens;
    this.attempts.content = sent;
    return REROUTED;
  }
}

/** Another endpoint makes the answer from its beginning: for the router it has the request as it came. */
class RepeatedStream extends StreamHost implements ContinuationHost {
  override readonly events: RepeatableStream;

  constructor(exchange: KeepableRequest, stream: RepeatableStream) {
    super(exchange);
    this.events = stream;
  }

  override get unfit(): UnfitStream | undefined {
    return this.events.unfit;
  }

  override stage(attempts: KeptAttempts): PathStage {
    return this.host(attempts, this);
  }

  override goesOn(delivery: Delivery, head: AnswerHead): Answer | undefined {
    return isStream(head) ? new RepeatedAnswer(delivery, this.events) : undefined;
  }

  override reset(): void {
    this.events.reset();
  }

  override close(): void {
    this.events.close();
  }

  broken(): BrokenPart | undefined {
    const { unfit } = this.events;
    if (unfit === undefined) return { outputTokens: 0 };
    this.cut(unfit);
    return undefined;
  }

  goOn(decision: Routed, fault: Fault): PathEvent {
    const { shared, path, prompt } = this.exchange;
    const { attempts } = this;
    shared.observe.fault?.(continuedEvent(attempts, fault, decision.endpoint, 0, false));
    attempts.continueAt(decision);
    shared.counters.continuationTokens += prompt.promptTokens;
    attempts.content = { path, body: repeatedBody(this.events, attempts.firstBody) };
    return REROUTED;
  }
}

/** The request as it came. vLLM stores a response under the id that its request brings. */
function repeatedBody({ dialect, first }: RepeatableStream, body: Buffer): Buffer {
  const id = first?.["id"];
  return dialect === "responses" && typeof id === "string" ? withFields(body, { request_id: id }) : body;
}

const COMPLETIONS = "/v1/completions";

/** Tokens that can be held back: a character's bytes but the last. */
const HELD_BACK_MAX = 3;

/**
 * Finds the seam of a stream whose last tokens may have text that did not go out: what it is, and whether the last of them
 * end inside a character, the engine that is to go on is asked (vLLM's `/detokenize`). False where it does not answer, or
 * they are no text.
 */
async function settleSeam(
  kept: KeptStream,
  textOf: (tokens: Int32Array) => Promise<string | undefined>,
): Promise<boolean> {
  const tokens = kept.unsettled;
  if (tokens === undefined) return true;
  for (let heldBack = 0; heldBack <= HELD_BACK_MAX && heldBack < tokens.length; heldBack++) {
    const text = await textOf(tokens.subarray(0, tokens.length - heldBack));
    if (text === undefined) return false;
    if (text.endsWith(REPLACEMENT)) continue;
    return kept.settle(heldBack, text);
  }
  return false;
}

const REPLACEMENT = "\ufffd";

/** The head is that of an answer with which a stream can go on. */
function isStream({ status, headers }: AnswerHead): boolean {
  return status === 200 && isMediaType(headerOf(headers, "content-type"), "text/event-stream");
}

/**
 * The completion that goes on behind a seam: prompt and answer so far as token ids, whatever route the stream came by, so
 * that no chat template and no tokenizer stands between.
 */
function continuedBody(kept: KeptStream, seam: Seam): Buffer {
  const { plan, prompt } = kept;
  const { carried, outputTokensMax, outputTokensMin, modelTokensMax } = plan;
  const whole = outputTokensMax ?? modelTokensMax - prompt.length;
  const body = {
    ...carried,
    prompt: [...prompt, ...kept.tokensBefore(seam)],
    max_tokens: Math.max(1, whole - seam.tokens),
    ...(outputTokensMin > seam.tokens && { min_tokens: outputTokensMin - seam.tokens }),
    // What was held back may begin a stop string, so the rest is needed at once, and as it is.
    ...(kept.owed !== undefined && { include_stop_str_in_output: true }),
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
  };
  return Buffer.from(JSON.stringify(body));
}

/**
 * The request that goes on behind an answer's text: what was asked first, with the answer so far behind its prompt, or as
 * the last message of its chat, which the engine is to continue (`continue_final_message`, as Hugging Face's chat templates
 * have it). Its length is bounded by the events that had text, as nobody has counted the tokens.
 */
function continuedText({ plan, seam }: KeptStream, text: string, firstBody: Buffer): Buffer {
  const parsed: unknown = JSON.parse(firstBody.toString());
  const first = isFields(parsed) ? parsed : {};
  const { outputTokensMax, outputTokensMin, dialect } = plan;
  const { return_token_ids: _ids, min_tokens: _min, max_tokens: _max, max_completion_tokens: _most, ...asked } = first;
  const { messages, prompt } = first;
  const behind =
    dialect === "chat"
      ? {
          messages: [...(Array.isArray(messages) ? (messages as unknown[]) : []), { role: "assistant", content: text }],
          continue_final_message: true,
          add_generation_prompt: false,
        }
      : { prompt: `${typeof prompt === "string" ? prompt : ""}${text}` };
  const body = {
    ...asked,
    ...behind,
    ...(outputTokensMax !== undefined && { max_tokens: Math.max(1, outputTokensMax - seam.tokens) }),
    ...(outputTokensMin > seam.tokens && { min_tokens: outputTokensMin - seam.tokens }),
    stream: true,
    stream_options: { include_usage: true },
  };
  return Buffer.from(JSON.stringify(body));
}
