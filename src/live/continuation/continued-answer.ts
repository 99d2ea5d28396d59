import type { Answer, AnswerCounts, Delivery, EventOutput } from "../answer/answer.ts";
import { findUsage } from "../answer/answer-json.ts";
import { faultOfEvent } from "../answer/faults.ts";
import { eventData, SseScanner } from "../answer/sse-scanner.ts";
import { isFields } from "../base/fields.ts";
import type { ContinuationPlan } from "./continuation-plan.ts";
import { eventFacts, type KeptStream, stopAcross, type StreamName } from "./kept-stream.ts";

/**
 * Carries what another endpoint answers at which a stream goes on: the client has a head, and what goes out is written anew,
 * as text that gathers until the bytes at hand are read.
 */
export abstract class ResumedAnswer implements Answer {
  readonly carriage = "stream";
  protected readonly delivery: Delivery;
  protected readonly scanner: SseScanner;
  /** For the client. */
  protected out = "";
  #began = false;
  #isAsking = false;

  constructor(delivery: Delivery, scanner: SseScanner) {
    this.delivery = delivery;
    this.scanner = scanner;
  }

  data(chunk: Buffer): void {
    this.scanner.push(chunk);
    while (!this.#isAsking && this.delivery.state !== "over" && this.scanner.next()) if (!this.event()) return;
    this.flush();
  }

  ended(): void {
    if (!this.#isAsking) this.delivery.broke("cut");
  }

  /** The client has a head. */
  showHead(): void {}

  writeHeld(): void {
    const { out } = this;
    this.out = "";
    if (out !== "") this.delivery.write(Buffer.from(out));
  }

  abstract counts(): AnswerCounts;

  /** Reads the event at hand; false where nothing of what follows is wanted. */
  protected abstract event(): boolean;

  /** The router is notified of the first token once. */
  protected begin(): void {
    if (this.#began) return;
    this.#began = true;
    this.delivery.firstToken();
  }

  protected flush(): void {
    if (this.out === "") return;
    if (this.delivery.state === "passing") this.writeHeld();
    else this.delivery.firstBytes();
  }

  /** All is there. */
  protected complete(): false {
    this.flush();
    this.delivery.marked("ok");
    this.delivery.completed("ok", true);
    return false;
  }

  /** All is there, unless the engine turns out to be shutting down; `whole` writes what waits for that. */
  protected proveEnd(whole: () => void): void {
    this.#isAsking = true;
    this.delivery.proveEnd((isWhole) => {
      if (!isWhole) return this.delivery.broke("draining");
      whole();
      this.complete();
    });
  }

  /** The event at hand is the last, and how many of its tokens belong to the answer is asked before it goes out. */
  protected countLast(length: number, event: EventOutput, counted: (tokens: number) => void): void {
    this.#isAsking = true;
    this.delivery.tokensUpTo(length, event, counted);
  }

  /** What comes is another answer than the one that the client has a part of. */
  protected diverged(): false {
    this.flush();
    this.delivery.diverged();
    return false;
  }

  /** The engine failed here too, by the event at hand. */
  protected broke(): false {
    const { bytes, start, end, kind } = this.scanner;
    this.flush();
    if (kind === "error") {
      const event = bytes.subarray(start, end);
      const error = eventData(event)?.["error"];
      const code = isFields(error) && typeof error["code"] === "number" ? error["code"] : 0;
      this.delivery.broke(faultOfEvent(code, event), event);
    } else this.delivery.broke(kind === "garbage" ? "garbage" : "draining");
    return false;
  }
}

/** What an event of the endpoint has, and what of it goes to the client. */
interface MadePiece extends EventOutput {
  readonly shown: string;
  readonly finishReason: string | null;
  readonly stopReason: unknown;
}

/**
 * Carries the rest of a stream that broke: a completion of another endpoint, written as the first endpoint's stream goes
 * on. Its events are read and written anew, one for one.
 *
 * What the client has already of the text is left out, and has to be the same; where it is not, the stream is cut: it can
 * only be made of two different answers.
 */
export class ContinuedAnswer extends ResumedAnswer {
  readonly #kept: KeptStream;
  /** As the gateway counts the prompt. */
  readonly #ownPromptTokens: number;
  readonly #dialect: "chat" | "completions";
  readonly #events: ClientEvents;
  /** Text that the client has and that comes again. */
  #again: string;
  #outputTokens: number;
  #cachedTokens: number | undefined;
  /** Text of the endpoint before that is still to go out, and the same until it counts as made. */
  readonly #owed: OwedText | undefined;
  #held: string;

  constructor(delivery: Delivery, kept: KeptStream, ownPromptTokens: number) {
    // Behind a text the same is asked again; behind ids a completion whatever was asked.
    const dialect = kept.text === undefined ? "completions" : kept.plan.dialect;
    super(delivery, new SseScanner(dialect, delivery.limits.eventBytesInspected));
    this.#kept = kept;
    this.#ownPromptTokens = ownPromptTokens;
    this.#dialect = dialect;
    this.#events = new ClientEvents(kept.plan, kept.name!);
    this.#again = kept.seam.behind;
    this.#held = kept.owed ?? "";
    this.#owed = kept.owed === undefined ? undefined : new OwedText(kept.owed, kept.plan.stops);
    this.#outputTokens = kept.continuedTokens;
  }

  counts(): AnswerCounts {
    const { promptTokens } = this.#kept;
    const usage = {
      promptTokens: promptTokens || undefined,
      cachedTokens: undefined,
      outputTokens: this.#outputTokens,
    };
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
    this.begin();
    const fresh = this.#new(facts.text);
    if (fresh === undefined || facts.otherPart !== undefined) return this.diverged();
    const finish = choice["finish_reason"];
    const reason = choice["stop_reason"];
    const ended = typeof finish === "string" ? { stop: typeof reason === "string" ? reason : undefined } : undefined;
    const piece = this.#pieceOf(fresh, ended);
    const made: MadePiece = {
      ids: facts.ids ?? [],
      text: facts.text,
      shown: piece.text,
      finishReason: typeof finish === "string" ? finish : null,
      stopReason: piece.stop ?? reason ?? null,
    };
    if (piece.used === undefined) {
      this.#pass(made);
      return true;
    }
    const stopped = { ...made, finishReason: "stop" };
    if (made.ids.length <= 1) return this.#stop(stopped);
    // The engine goes on behind a stop string that began before its own text, and the event may have tokens of that.
    this.countLast(facts.text.length - fresh.length + piece.used, made, (tokens) => {
      this.#stop({ ...stopped, ids: made.ids.slice(0, tokens) });
    });
    return false;
  }

  #stop(last: MadePiece): false {
    this.#pass(last);
    return this.#done();
  }

  #pass({ ids, text, shown, finishReason, stopReason }: MadePiece): void {
    const kept = this.#kept;
    const newIds = ids.slice(kept.idsAgain);
    this.#outputTokens += kept.text === undefined ? ids.length : Number(text !== "");
    kept.goOn(ids, this.#held, text, shown);
    this.#held = "";
    if (shown !== "" || finishReason !== null || (kept.plan.showsIds && newIds.length > 0))
      this.out += this.#events.piece({ text: shown, ids: newIds, finishReason, stopReason }, this.#counts);
    kept.ended ||= finishReason !== null;
    this.delivery.progress(this.#outputTokens - kept.continuedTokens);
  }

  /** What of a text goes to the client, and the stop string that ends the answer with it. */
  #pieceOf(text: string, ended: { readonly stop: string | undefined } | undefined): OwedPiece {
    if (this.#owed !== undefined) return this.#owed.add(text, ended);
    const across = stopAcross(this.#kept, text);
    if (across === undefined) return { text, stop: undefined };
    return { text: text.slice(0, across.length), stop: across.stop, used: across.length };
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
    // Once the model has ended the counts are the whole answer's, whatever becomes of the mark behind them.
    if (this.#kept.ended) this.#writeCounts(eventData(bytes.subarray(start, end))?.["system_fingerprint"]);
  }

  #writeCounts(fingerprint: unknown): void {
    if (!this.#kept.counted) this.out += this.#events.usage(this.#counts, fingerprint);
    this.#kept.counted = true;
  }

  get #counts() {
    const promptTokens = this.#kept.promptTokens || this.#ownPromptTokens;
    return { promptTokens, outputTokens: this.#outputTokens, cachedTokens: this.#cachedTokens };
  }

  #done(): false {
    if (!this.#kept.ended) return this.broke();
    this.#writeCounts(undefined);
    this.out += DONE_EVENT;
    return this.complete();
  }
}

function firstChoice(event: Record<string, unknown> | undefined) {
  const choices = event?.["choices"];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isFields(first) ? first : undefined;
}

/** Tokens as the client is to count them: the prompt of the first endpoint, and the output of all. */
interface TokenCounts {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of the prompt, at the endpoint that wrote the end; undefined where it does not state them. */
  readonly cachedTokens?: number | undefined;
}

/** A piece of output of an endpoint at which a stream went on. */
interface ContinuedPiece {
  readonly text: string;
  readonly ids: readonly number[];
  /** Null but in the last piece. */
  readonly finishReason: string | null;
  readonly stopReason: unknown;
}

/** Writes the events of a stream that went on as its first endpoint would have written them. */
class ClientEvents {
  readonly #plan: ContinuationPlan;
  readonly #head: string;

  constructor(plan: ContinuationPlan, { id, object, created, model }: StreamName) {
    this.#plan = plan;
    this.#head = JSON.stringify({ id, object, created, model }).slice(0, -1);
  }

  piece({ text, ids, finishReason, stopReason }: ContinuedPiece, counts: TokenCounts): string {
    const { dialect, showsIds, showsRunningUsage } = this.#plan;
    const last = finishReason !== null;
    const token_ids = showsIds ? ids : null;
    const end = {
      finish_reason: finishReason,
      ...((last || dialect === "completions") && { stop_reason: stopReason }),
    };
    const choice =
      dialect === "chat"
        ? { index: 0, delta: { content: text }, logprobs: null, ...end, token_ids }
        : { index: 0, text, logprobs: null, ...end, prompt_token_ids: null, token_ids };
    return this.#event({ choices: [choice], ...(showsRunningUsage && { usage: usageOf(counts) }) });
  }

  /** The last event with the counts, where the client asked for it; "" where it did not. */
  usage(counts: TokenCounts, fingerprint: unknown): string {
    if (!this.#plan.showsUsage) return "";
    const mark = typeof fingerprint === "string" ? { system_fingerprint: fingerprint } : {};
    return this.#event({ choices: [], usage: usageOf(counts), ...mark });
  }

  #event(rest: object): string {
    return `data: ${this.#head},${JSON.stringify(rest).slice(1)}\n\n`;
  }
}

export const DONE_EVENT = "data: [DONE]\n\n";

function usageOf({ promptTokens, outputTokens, cachedTokens }: TokenCounts) {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
    ...(cachedTokens !== undefined && {
      prompt_tokens_details: { cached_tokens: Math.min(cachedTokens, promptTokens) },
    }),
  };
}

/**
 * What a stream lacks whose model has ended: its counts, as we counted the tokens where the engine's never came, and its
 * mark of completion.
 */
export function closingEvents(kept: KeptStream, ownPromptTokens: number, tokensSeen: number): string {
  const { name, plan, counted } = kept;
  if (counted || name === undefined) return DONE_EVENT;
  const promptTokens = kept.promptTokens || ownPromptTokens;
  const outputTokens = kept.outputTokens || kept.continuedTokens + tokensSeen;
  return new ClientEvents(plan, name).usage({ promptTokens, outputTokens }, undefined) + DONE_EVENT;
}

interface OwedPiece {
  /** What may go to the client now. */
  readonly text: string;
  /** The stop string that ends the answer here; undefined where none does. */
  readonly stop: string | undefined;
  /** Length of what of the new text came before the end of a stop string that was found here. */
  readonly used?: number;
}

/**
 * The text of an answer whose first engine broke while it held some back for stop strings, which the client is still to
 * get. A stop string may begin in that and end in what the next engine makes, which sees only its own; so this one looks,
 * and holds back as engines do.
 */
export class OwedText {
  readonly #stops: readonly string[];
  readonly #heldBack: number;
  #text: string;
  /** Leading part of the text that the first engine made. */
  #owed: number;

  /** The next engine sends its text at once, and with the stop string that it meets. */
  constructor(owed: string, stops: readonly string[]) {
    this.#text = owed;
    this.#owed = owed.length;
    this.#stops = stops;
    this.#heldBack = Math.max(...stops.map((stop) => stop.length)) - 1;
  }

  /** More of the text. `ended`: the engine ends the answer with it, by a stop string of its own or without one. */
  add(text: string, ended: { readonly stop: string | undefined } | undefined): OwedPiece {
    const before = this.#text.length;
    this.#text += text;
    const across = this.#across();
    const stop = across?.stop ?? ended?.stop;
    if (across !== undefined) this.#text = this.#text.slice(0, across.at);
    else if (stop !== undefined && this.#text.endsWith(stop)) this.#text = this.#text.slice(0, -stop.length);
    const isLast = stop !== undefined || ended !== undefined;
    const end = isLast ? this.#text.length : wholeUpTo(this.#text, Math.max(0, this.#text.length - this.#heldBack));
    const shown = this.#text.slice(0, end);
    this.#text = this.#text.slice(end);
    this.#owed = Math.max(0, this.#owed - end);
    return { text: shown, stop, ...(across && { used: across.at + across.stop.length - before }) };
  }

  /** The stop string that ends first of those that begin in what the first engine made. */
  #across(): { readonly stop: string; readonly at: number } | undefined {
    let first: { readonly stop: string; readonly at: number } | undefined;
    for (const stop of this.#stops) {
      const at = this.#text.indexOf(stop);
      if (at < 0 || at >= this.#owed) continue;
      if (first === undefined || at + stop.length < first.at + first.stop.length) first = { stop, at };
    }
    return first;
  }
}

/** The same place, or the one before it where it is in the middle of a character. */
function wholeUpTo(text: string, end: number): number {
  const isSplit = end > 0 && end < text.length && text.codePointAt(end - 1)! > 0xffff;
  return isSplit ? end - 1 : end;
}
