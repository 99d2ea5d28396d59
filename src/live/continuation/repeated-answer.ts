import type { AnswerCounts, Delivery } from "../answer/answer.ts";
import { endsBlock, eventData, isUnprovenEnd, mayEndBroken, SseScanner } from "../answer/sse-scanner.ts";
import { type Usage, findUsage } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";
import { DONE_EVENT } from "./client-event.ts";
import { eventPieces, tokenEntries } from "./event-pieces.ts";
import { noteItem, type RepeatableStream } from "./repeatable-stream.ts";
import { ResumedAnswer } from "./resumed-answer.ts";

/**
 * Carries an answer that another endpoint makes again from its beginning. What the client has of it is left out, and has to
 * be the same; where it is not, the stream is cut. The rest goes out under the names of the stream that broke.
 */
export class RepeatedAnswer extends ResumedAnswer {
  readonly #stream: RepeatableStream;
  /** What the client has and that is still to come again. */
  readonly #again: { readonly name: string; text: string }[];
  /** The same of log-probabilities of tokens. */
  #entriesAgain: number;
  readonly #itemIds = new Map<string, string>();
  #responseId: string | undefined;
  #ends = false;
  #tokens = 0;
  #usage: Usage | undefined;
  readonly #blockEnds: Fields[] = [];

  constructor(delivery: Delivery, stream: RepeatableStream) {
    super(delivery, new SseScanner(stream.dialect, delivery.limits.eventBytesInspected));
    this.#stream = stream;
    this.#again = stream.parts.map((part) => ({ ...part }));
    this.#entriesAgain = stream.tokenEntries;
  }

  counts(): AnswerCounts {
    return { usage: this.#usage, tokensSeen: this.#tokens, responseId: this.#responseId };
  }

  protected override event(): boolean {
    if (this.#holdsBlockEnd()) return true;
    switch (this.scanner.kind) {
      case "token":
        this.#tokens++;
        this.begin();
        if (!this.#event()) return false;
        this.delivery.progress(this.#tokens);
        return true;
      case "end":
        this.#ends = true;
        return this.#event();
      case "meta":
      case "usage":
        return this.#event();
      case "done":
        return this.#done();
      case "error":
      case "abort":
      case "garbage":
        return this.broke();
      case "comment":
        return true;
    }
  }

  /** True of an end of a block, which waits for what follows it. */
  #holdsBlockEnd(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    const { dialect } = this.#stream;
    if (mayEndBroken(kind)) return false;
    const event = endsBlock(dialect, kind, bytes, start, end) ? eventData(bytes.subarray(start, end)) : undefined;
    if (event !== undefined) this.#blockEnds.push(event);
    else if (!this.#isUnproven()) this.#passBlockEnds();
    return event !== undefined;
  }

  #passBlockEnds(): void {
    for (const held of this.#blockEnds.splice(0)) if (this.#trim(held) === true) this.#pass(held);
  }

  #isUnproven(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    return isUnprovenEnd(this.#stream.dialect, kind, () => eventData(bytes.subarray(start, end)));
  }

  /** Passes on what the client has not of an event; false where it has another one in its place. */
  #event(): boolean {
    const { bytes, start, end, kind } = this.scanner;
    const event = eventData(bytes.subarray(start, end));
    if (event === undefined) return true;
    this.#usage = findUsage(bytes, start, end) ?? this.#usage;
    if (kind === "usage" && this.delivery.hidesUsage) return true;
    if (this.#stream.dialect === "responses") noteItem(this.#itemIds, event);
    const isNew = this.#trim(event);
    if (isNew === true || kind === "usage" || kind === "done") this.#pass(event);
    return isNew !== undefined || this.diverged();
  }

  /** Leaves out of an event what the client has; true where something is left, undefined where it is something else. */
  #trim(event: Fields): boolean | undefined {
    let isNew = false;
    for (const { name, text, keep } of eventPieces(this.#stream.dialect, event)) {
      let rest = text;
      const first = this.#again[0];
      if (first !== undefined) {
        const both = Math.min(first.text.length, text.length);
        if (first.name !== name || first.text.slice(0, both) !== text.slice(0, both)) return undefined;
        first.text = first.text.slice(both);
        if (first.text === "") this.#again.shift();
        rest = text.slice(both);
        keep(rest);
        // The next part may begin only once this one is over.
        if (rest !== "" && this.#again.length > 0) return undefined;
      }
      isNew ||= rest !== "";
    }
    const { count, skip } = tokenEntries(event);
    const had = Math.min(count, this.#entriesAgain);
    if (had > 0) skip(had);
    this.#entriesAgain -= had;
    return isNew || count > had;
  }

  #pass(event: Fields): void {
    const { dialect, first, events } = this.#stream;
    this.#stream.add(event);
    this.#stream.events++;
    if (dialect === "chat" || dialect === "completions") {
      const named = { ...event, ...(first && { id: first["id"], created: first["created"] }) };
      this.out += `data: ${JSON.stringify(named)}\n\n`;
    } else if (dialect === "messages") this.out += typedEvent(event, JSON.stringify(event));
    else this.out += typedEvent(event, this.#asFirst({ ...event, sequence_number: events }));
  }

  /** An event of a response, with the ids that the client knows in place of those that this engine made up. */
  #asFirst(event: Fields): string {
    const { first, itemIds } = this.#stream;
    let text = JSON.stringify(event);
    for (const [place, id] of this.#itemIds) text = renamed(text, id, itemIds.get(place));
    const { response } = event;
    const own = isFields(response) ? response["id"] : undefined;
    this.#responseId = typeof first?.["id"] === "string" ? first["id"] : undefined;
    return typeof own === "string" ? renamed(text, own, this.#responseId) : text;
  }

  #done(): false {
    if (this.#again.length > 0 || this.#entriesAgain > 0) return this.diverged();
    const { dialect } = this.#stream;
    if (dialect === "messages" && !this.#ends) return this.broke();
    if (this.#isUnproven()) return this.#proveEnd();
    if (dialect === "chat" || dialect === "completions") this.out += DONE_EVENT;
    else if (!this.#event()) return false;
    return this.complete();
  }

  /** What ends it waits until the engine was asked whether it still serves. */
  #proveEnd(): false {
    const { bytes, start, end } = this.scanner;
    const event = eventData(bytes.subarray(start, end));
    this.#usage = findUsage(bytes, start, end) ?? this.#usage;
    this.flush();
    this.proveEnd(() => {
      this.#passBlockEnds();
      if (event !== undefined) this.#pass(event);
    });
    return false;
  }
}

function typedEvent({ type }: Fields, data: string): string {
  return `event: ${String(type)}\ndata: ${data}\n\n`;
}

/** Ids stand between quotes, and are random. */
function renamed(text: string, from: string, to: string | undefined): string {
  return to === undefined ? text : text.replaceAll(JSON.stringify(from), JSON.stringify(to));
}
