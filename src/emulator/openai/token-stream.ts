import { isComplete, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { EventStream } from "../http/event-stream.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";

/**
 * An answer as an event stream: one event per token and choice. While a client reads too slowly its tokens are held
 * back and merged into one event, as vLLM does, so that what is buffered stays bounded by the answer's own length.
 */
export abstract class TokenStream implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = true;
  protected readonly stream: EventStream;
  /** Tokens of each sequence that went into events. */
  readonly #shown: number[];
  readonly #closed: boolean[];
  #opened = false;
  #draining = false;
  #ended = false;

  constructor(exchange: ServedRequest, sequences: readonly EmulatedSequence[]) {
    this.sequences = sequences;
    this.stream = new EventStream(exchange);
    this.#shown = sequences.map(() => 0);
    this.#closed = sequences.map(() => false);
  }

  /** Events before the first token. */
  protected abstract open(): void;
  /** Tokens `from` to `to` of a sequence; `last` when the sequence has finished with them. */
  protected abstract tokens(sequence: EmulatedSequence, from: number, to: number, last: boolean): void;
  /** Events after the last token. */
  protected abstract close(): void;

  advance(): void {
    if (this.#ended || !isOpen(this.stream.exchange)) return;
    if (this.stream.congested) this.#waitForDrain();
    else this.#write(false);
  }

  fail(error: ApiError): void {
    if (this.#ended || !isOpen(this.stream.exchange)) return;
    this.failure(error);
    this.#end();
  }

  /** Events that report an error in the midst of an answer. */
  protected failure(error: ApiError): void {
    this.stream.data(error.event);
    this.stream.data("[DONE]");
  }

  #waitForDrain(): void {
    if (this.#draining) return;
    this.#draining = true;
    this.stream.onDrain(() => {
      this.#draining = false;
      if (!this.#ended && isOpen(this.stream.exchange)) this.#write(true);
    });
  }

  #write(merge: boolean): void {
    if (!this.#opened) {
      this.#opened = true;
      this.open();
    }
    // In turns, as the tokens were computed.
    let more = true;
    while (more) {
      more = false;
      for (const [index, sequence] of this.sequences.entries()) {
        if (this.#writeNext(sequence, index, merge)) more = true;
      }
    }
    if (!isComplete(this)) {
      this.stream.flush();
      return;
    }
    this.close();
    this.#end();
  }

  /** The next event of a sequence; true if another one may follow. */
  #writeNext(sequence: EmulatedSequence, index: number, merge: boolean): boolean {
    const { produced, finish } = sequence;
    const shown = this.#shown[index] ?? 0;
    if (this.#closed[index] === true || (shown === produced && finish === undefined)) return false;
    const to = merge ? produced : Math.min(produced, shown + 1);
    const last = to === produced && finish !== undefined;
    this.#shown[index] = to;
    if (last) this.#closed[index] = true;
    this.tokens(sequence, shown, to, last);
    return to < produced;
  }

  #end(): void {
    this.#ended = true;
    this.stream.end();
  }
}
