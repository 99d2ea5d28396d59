import type { Answer, AnswerCounts, AnswerHead, Delivery } from "../answer/answer.ts";
import { isMediaType, headerOf } from "../http/headers.ts";
import { eventData, SseScanner } from "../answer/sse-scanner.ts";
import { findUsage } from "../answer/answer-json.ts";
import { assert } from "#core/base/assert.ts";
import type { StreamKeeping } from "./keep-stream.ts";
import { RepeatedAnswer } from "./repeated-answer.ts";
import { isFields } from "../base/fields.ts";
import { ClientEvents, DONE_EVENT } from "./client-event.ts";
import { eventFacts } from "./event-facts.ts";
import type { KeptStream } from "./kept-stream.ts";
import { ResumedAnswer } from "./resumed-answer.ts";
import { type OwedPiece, OwedText } from "./owed-text.ts";
import { stopAcross } from "./seam.ts";

/**
 * Carries the rest of a stream that broke: a completion of another endpoint, written as the first endpoint's stream goes
 * on. Its events are read and written anew, one for one.
 *
 * What the client has already of the text is left out, and has to be the same; where it is not, the stream is cut: it can
 * only be made of two different answers.
 */
class ContinuedAnswer extends ResumedAnswer {
  readonly #kept: KeptStream;
  readonly #dialect: "chat" | "completions";
  readonly #events: ClientEvents;
  /** Text that the client has and that comes again. */
  #again: string;
  #outputTokens: number;
  #cachedTokens: number | undefined;
  #fingerprint: unknown;
  /** Text of the endpoint before that is still to go out, and the same until it counts as made. */
  readonly #owed: OwedText | undefined;
  #held: string;

  constructor(delivery: Delivery, kept: KeptStream) {
    // Behind a text the same is asked again; behind ids a completion whatever was asked.
    const dialect = kept.text === undefined ? "completions" : kept.plan.dialect;
    super(delivery, new SseScanner(dialect, delivery.limits.eventBytesInspected));
    this.#kept = kept;
    this.#dialect = dialect;
    this.#events = new ClientEvents(kept.plan, kept.name!);
    this.#again = kept.seam.behind;
    this.#held = kept.owed ?? "";
    this.#owed = kept.owed === undefined ? undefined : new OwedText(kept.owed, kept.plan.stops);
    this.#outputTokens = kept.continuedTokens;
  }

  counts(): AnswerCounts {
    const { promptTokens } = this.#kept;
    const usage = { promptTokens, cachedTokens: undefined, outputTokens: this.#outputTokens };
    return { usage: this.#kept.ended ? usage : undefined, tokensSeen: this.#outputTokens };
  }

  protected override event(): boolean {
    switch (this.scanner.kind) {
      case "token":
        return this.#piece();
      case "usage":
        this.#count();
        return true;
      case "done":
        return this.#done();
      case "error":
      case "abort":
      case "garbage":
        return this.broke();
      case "end":
      case "meta":
      case "comment":
        return true;
    }
  }

  /** False where nothing of what follows is wanted. */
  #piece(): boolean {
    const { bytes, start, end } = this.scanner;
    const facts = eventFacts(bytes, start, end, this.#dialect);
    const choice = firstChoice(eventData(bytes.subarray(start, end)));
    if (facts === undefined || choice === undefined) return true;
    const ids = facts.ids ?? [];
    const newIds = ids.slice(this.#kept.idsAgain);
    this.begin();
    let shown = this.#new(facts.text);
    if (shown === undefined || facts.otherPart !== undefined) return this.diverged();
    const finish = choice["finish_reason"];
    const reason = choice["stop_reason"];
    const ended = typeof finish === "string" ? { stop: typeof reason === "string" ? reason : undefined } : undefined;
    const piece = this.#pieceOf(shown, ended);
    shown = piece.text;
    const stopped = piece.stop !== undefined && ended?.stop === undefined;
    this.#outputTokens += this.#kept.text === undefined ? ids.length : Number(facts.text !== "");
    this.#kept.goOn(ids, this.#held + facts.text, shown);
    this.#held = "";
    const finishReason = stopped ? "stop" : typeof finish === "string" ? finish : null;
    const stopReason = piece.stop ?? reason ?? null;
    if (shown !== "" || finishReason !== null || (this.#kept.plan.showsIds && newIds.length > 0))
      this.out += this.#events.piece({ text: shown, ids: newIds, finishReason, stopReason }, this.#counts);
    this.#kept.ended ||= finishReason !== null;
    this.delivery.progress(this.#outputTokens - this.#kept.continuedTokens);
    return !stopped || this.#done();
  }

  /** What of a text goes to the client, and the stop string that ends the answer with it. */
  #pieceOf(text: string, ended: { readonly stop: string | undefined } | undefined): OwedPiece {
    if (this.#owed !== undefined) return this.#owed.add(text, ended);
    const across = stopAcross(this.#kept, text);
    return across === undefined ? { text, stop: undefined } : { text: text.slice(0, across.length), stop: across.stop };
  }

  /** What of a text the client has not; undefined where it has another text in its place. */
  #new(text: string): string | undefined {
    const again = this.#again;
    if (again === "") return text;
    const both = Math.min(again.length, text.length);
    if (again.slice(0, both) !== text.slice(0, both)) return undefined;
    this.#again = again.slice(both);
    return text.slice(both);
  }

  #count(): void {
    const { bytes, start, end } = this.scanner;
    const usage = findUsage(bytes, start, end);
    if (usage?.outputTokens !== undefined) this.#outputTokens = this.#kept.continuedTokens + usage.outputTokens;
    this.#cachedTokens = usage?.cachedTokens;
    // Behind a text, the answer so far is in the engine's count of the prompt.
    if (this.#kept.promptTokens === 0 && usage?.promptTokens !== undefined)
      this.#kept.promptTokens = Math.max(1, usage.promptTokens - this.#kept.continuedTokens);
    this.#fingerprint = eventData(bytes.subarray(start, end))?.["system_fingerprint"];
  }

  get #counts() {
    const { promptTokens } = this.#kept;
    return { promptTokens, outputTokens: this.#outputTokens, cachedTokens: this.#cachedTokens };
  }

  #done(): false {
    if (!this.#kept.ended) return this.broke();
    this.out += this.#events.usage(this.#counts, this.#fingerprint) + DONE_EVENT;
    return this.complete();
  }
}

/** Carries what an endpoint answers at which a stream goes on. */
export function continuedAnswer(
  { kept, repeatable }: Pick<StreamKeeping, "kept" | "repeatable">,
  delivery: Delivery,
): Answer {
  if (repeatable !== undefined) return new RepeatedAnswer(delivery, repeatable);
  assert(kept !== undefined, "a stream that goes on was kept");
  return new ContinuedAnswer(delivery, kept);
}

/** The head is that of an answer with which a stream can go on. */
export function isContinuation({ status, headers }: AnswerHead): boolean {
  return status === 200 && isMediaType(headerOf(headers, "content-type"), "text/event-stream");
}

function firstChoice(event: Record<string, unknown> | undefined) {
  const choices = event?.["choices"];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isFields(first) ? first : undefined;
}
