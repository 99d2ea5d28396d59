import type { Fault } from "#core/endpoint/fault.ts";
import {
  ENGINE_ERROR,
  FIRST_BYTES,
  FIRST_TOKEN,
  HOLD_FULL,
  LET_THROUGH,
  type WholeOutcome,
} from "#core/path/path-event.ts";
import type {
  Answer,
  AnswerHead,
  DeliveryState,
  Delivery,
  EventOutput,
  EventReader,
  KeptAnswer,
  TokenReader,
} from "../answer/answer.ts";
import { PassAnswer } from "../answer/pass-answer.ts";
import { nowMicros } from "../base/clock.ts";
import { decisiveText } from "../base/decisive.ts";
import { clientHeaders } from "../http/headers.ts";
import type { Dialect } from "../http/route.ts";
import type { Forward } from "./forward.ts";
import type { ForwardedRequest, ForwardShared } from "./forwarded-request.ts";

/** What endpoints themselves reported of a failure. */
export interface EngineErrors {
  /** In place of an answer. */
  readonly kept: KeptAnswer | undefined;
  /** In a stream that had begun: the whole event. */
  readonly event: Buffer | undefined;
}

/** What the answers of one request reach it by: what they find becomes its events, what they write goes to its client. */
export class AnswerDelivery implements Delivery {
  readonly #exchange: ForwardedRequest;
  readonly #forward: Forward;
  /** Of the attempt under way, once it has a head. */
  answer: Answer | undefined;
  readonly hidesUsage: boolean;
  readonly writer: ForwardedRequest["writer"];
  readonly limits: ForwardedRequest["limits"];
  readonly counters: ForwardShared["counters"];
  readonly dialect: Dialect;
  readonly keptTokens: TokenReader | undefined;
  readonly keptEvents: EventReader | undefined;
  /** Of the endpoint at hand. */
  #tokensSeen = 0;
  /** The last endpoint's own error, where its attempt failed with one: passed on if no endpoint does better. */
  #kept: KeptAnswer | undefined;
  /** The error event by which an engine ended a stream that could go on elsewhere. */
  #engineError: { readonly fault: Fault; readonly event: Buffer } | undefined;

  constructor(exchange: ForwardedRequest, forward: Forward, hidesUsage: boolean) {
    this.#exchange = exchange;
    this.#forward = forward;
    this.hidesUsage = hidesUsage;
    this.writer = exchange.writer;
    this.limits = exchange.limits;
    this.counters = exchange.shared.counters;
    this.dialect = exchange.route.dialect;
    this.keptTokens = exchange.keeper?.tokens;
    this.keptEvents = exchange.keeper?.events;
  }

  get cachedTokens(): number | undefined {
    return this.#forward.cachedTokens;
  }
  get answerReader() {
    return this.#exchange.answerReader;
  }

  get continues(): boolean {
    const { state, keeper } = this.#exchange;
    if (state.kind !== "passing" || state.carriage !== "stream") return false;
    return keeper !== undefined && keeper.unfit === undefined;
  }

  get judge() {
    return this.#exchange.judge;
  }

  get state(): DeliveryState {
    const { state, judge } = this.#exchange;
    if (state.kind === "passing") return "passing";
    if (state.kind === "resuming") return "held";
    if (state.kind !== "holding") return "over";
    if (judge?.judging === true && state.carriage !== "through") return "held";
    return state.content === "silent" ? "held" : "due";
  }

  headers(head: AnswerHead, keepLength: boolean, promptTokens = Infinity): string[] {
    const { routed, endpoint } = this.#forward;
    const own = this.#exchange.ownHeaders(endpoint, decisiveText(routed, this.#exchange.prompt));
    return clientHeaders(head.headers, { ...own, hitTokens: Math.min(own.hitTokens, promptTokens) }, keepLength);
  }

  named(piece: Buffer): Buffer {
    return this.#exchange.nameSwap?.push(piece) ?? piece;
  }

  write(piece: Buffer): void {
    const { state, nameSwap } = this.#exchange;
    // What goes through unread may have its length in the head.
    const isRead = nameSwap !== undefined && !("carriage" in state && state.carriage === "through");
    const given = isRead ? nameSwap.push(piece) : piece;
    if (given.length > 0 && !this.#exchange.writer.write(given)) this.#forward.pause();
  }

  get takesChunks(): boolean {
    const { keptTokens, writer } = this;
    const { state, nameSwap, judge, answerReader } = this.#exchange;
    if (state.kind !== "passing" || nameSwap !== undefined || judge !== undefined) return false;
    if (this.keptEvents !== undefined) return false;
    return answerReader === undefined && (keptTokens === undefined || keptTokens.readsTokens) && writer.takesChunks;
  }

  writeChunks(bytes: Buffer, length: number): void {
    if (!this.#exchange.writer.writeChunks(bytes, length)) this.#forward.pause();
  }

  firstToken(): void {
    this.#tokensSeen = 1;
    this.#exchange.dispatch(FIRST_TOKEN);
    this.#judgeIfReady();
  }

  progress(tokensSeen: number): void {
    this.#tokensSeen = tokensSeen;
    const { tokens } = this.#forward;
    if (tokens.reaches(tokensSeen)) tokens.report(nowMicros());
    this.#judgeIfReady();
  }

  holdFull(): void {
    this.judge?.holdFull(this.#exchange);
    this.#exchange.dispatch(HOLD_FULL);
  }

  firstBytes(): void {
    this.#exchange.dispatch(FIRST_BYTES);
  }

  letThrough(head: AnswerHead, chunks: readonly Buffer[]): void {
    const answer = new PassAnswer(this, head);
    this.answer = answer;
    this.#exchange.dispatch(LET_THROUGH);
    for (const chunk of chunks) answer.data(chunk);
  }

  marked(outcome: WholeOutcome): void {
    if (outcome === "ok" && this.#judged(() => this.marked(outcome))) return;
    this.#exchange.dispatch({ kind: "marked", outcome });
  }

  completed(outcome: WholeOutcome, promisesMark: boolean): void {
    if (outcome === "ok" && this.#judged(() => this.completed(outcome, promisesMark))) return;
    if (promisesMark && this.continues && !this.#isMarked) return this.broke("cut");
    this.#exchange.dispatch({ kind: "answer-ended", outcome, promisesMark });
  }

  proveEnd(then: (isWhole: boolean) => void): void {
    this.#forward.proveEnd(then);
  }

  tokensUpTo(length: number, event: EventOutput, then: (tokens: number) => void): void {
    this.#forward.tokensUpTo(length, event, then);
  }

  engineError(): void {
    this.#exchange.dispatch(ENGINE_ERROR);
  }

  /** A stream of which nothing is missing but its counts and its mark of completion gets them here. */
  broke(fault: Fault, event?: Buffer): void {
    this.#engineError = event && { fault, event: Buffer.from(event) };
    const { keeper, state } = this.#exchange;
    const missing = this.continues && !this.#isMarked ? keeper?.missing(this.#tokensSeen) : undefined;
    if (missing !== undefined) {
      this.write(Buffer.from(missing));
      this.marked("ok");
    } else if (state.kind === "passing" && !this.continues && !this.#isMarked) keeper?.cut();
    this.#exchange.dispatch({ kind: "upstream-broke", fault, continues: this.continues });
  }

  /** What engines reported of this fault: in place of an answer, or in the stream that it broke. */
  errorsOf(fault: Fault): EngineErrors {
    return { kept: this.#kept, event: this.#engineError?.fault === fault ? this.#engineError.event : undefined };
  }

  diverged(): void {
    this.#exchange.keeper?.cut("diverged");
    this.#exchange.dispatch({ kind: "upstream-broke", fault: "garbage", continues: false });
  }

  /** Whether its judge asks for another answer, or has yet to learn whether it can; what comes of this one waits for that. */
  #judged(goOn?: () => void): boolean {
    const { state, judge } = this.#exchange;
    if (judge === undefined || state.kind !== "holding" || state.carriage === "through") return false;
    return judge.judge(this.#exchange, this.#forward, goOn);
  }

  #judgeIfReady(): void {
    if (this.#exchange.judge?.isReady === true) this.#judged();
  }

  get #isMarked(): boolean {
    const { state } = this.#exchange;
    return state.kind === "passing" && (state.content === "complete" || state.content === "turned-down");
  }

  attemptFailed(fault: Fault, kept?: KeptAnswer): void {
    this.#kept = kept;
    this.#forward.answerFailed(fault, kept);
    this.#exchange.dispatch({ kind: "attempt-failed", fault, kept: kept !== undefined });
  }
}
