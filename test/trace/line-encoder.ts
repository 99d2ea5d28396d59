import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { type EncoderOptions, TraceEncoder } from "#trace/codec/encoder.ts";
import type { RecordedDecision, TraceHeader } from "#trace/codec/record.ts";

/** A trace's lines one by one, as text without their newlines. */
export class LineEncoder {
  readonly #encoder: TraceEncoder;

  constructor(options: EncoderOptions) {
    this.#encoder = new TraceEncoder(options);
  }

  get blocksRepeated(): number {
    return this.#encoder.blocksRepeated;
  }

  header(header: TraceHeader): string {
    this.#encoder.header(header);
    return this.#line();
  }

  record(input: Input, decision: Decision | RecordedDecision | undefined): string {
    this.#encoder.record(input, decision);
    return this.#line();
  }

  gap(at: number, dropped: number): string {
    this.#encoder.gap(at, dropped);
    return this.#line();
  }

  #line(): string {
    return this.#encoder.lines.taken().toString().slice(0, -1);
  }
}
