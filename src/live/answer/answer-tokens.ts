import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { ChainEnd } from "../tokenizer/text/chain-state.ts";
import type { AnswerReader, AnswerReport } from "./answer-reader.ts";
import { valueAt, type Usage } from "./answer-json.ts";

/** Tokens that there is room for at first. */
const TOKENS_MIN = 256;

/**
 * The token ids of one answer, as its client asked the engine to send them (`return_token_ids`), for the blocks that
 * they fill behind the prompt's. Ids beyond `tokensMax` are counted and not kept: the blocks before them are known all
 * the same.
 */
export class AnswerTokens implements AnswerReader {
  readonly #end: ChainEnd;
  readonly #tokensMax: number;
  readonly #counters: GatewayCounters;
  #tokens = new Int32Array(TOKENS_MIN);
  #kept = 0;
  #count = 0;

  constructor(end: ChainEnd, tokensMax: number, counters: GatewayCounters) {
    this.#end = end;
    this.#tokensMax = tokensMax;
    this.#counters = counters;
  }

  reset(): void {
    this.#kept = 0;
    this.#count = 0;
  }

  /** Takes the ids in an event: vLLM's `token_ids` of one choice. */
  event(json: Buffer, start: number, end: number): void {
    let at = valueAt(json, NAME, start, end);
    if (json[at] !== BRACKET) return;
    for (at++; at < end && json[at] !== BRACKET_CLOSED; at++) {
      if (!isDigit(json[at])) continue;
      let token = 0;
      for (; isDigit(json[at]); at++) token = 10 * token + json[at]! - ZERO;
      this.#push(token);
      if (json[at] === BRACKET_CLOSED) return;
    }
  }

  whole(body: Buffer): void {
    this.event(body, 0, body.length);
  }

  ended(_requestId: string, usage: Usage | undefined): AnswerReport {
    const counted = usage?.outputTokens;
    if (counted !== undefined && counted !== this.#count) {
      countUp(this.#counters.answersUnknown, "count");
      return {};
    }
    const answerHashes = this.#hashes();
    if (answerHashes === undefined) return {};
    countUp(this.#counters.answersKnown, "ids");
    return { answerHashes };
  }

  /**
   * Two words per block that prompt and answer filled behind the prompt's full blocks; undefined where there is none.
   * The last token was sampled and never computed.
   */
  #hashes(): Int32Array | undefined {
    const computed = Math.min(this.#kept, this.#count - 1);
    if (computed <= 0) return undefined;
    const hashes = this.#end.hashesBehind(this.#tokens.subarray(0, computed));
    return hashes.length === 0 ? undefined : hashes;
  }

  #push(token: number): void {
    this.#count++;
    if (this.#kept === this.#tokensMax) {
      this.#counters.answerTokensDropped++;
      return;
    }
    if (this.#kept === this.#tokens.length) {
      const wide = new Int32Array(2 * this.#kept);
      wide.set(this.#tokens);
      this.#tokens = wide;
    }
    this.#tokens[this.#kept++] = token;
  }
}

const NAME = Buffer.from('"token_ids"');
const BRACKET = 0x5b;
const BRACKET_CLOSED = 0x5d;
const ZERO = 0x30;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
