import type { GatewayCounters } from "../metrics/gateway-counters.ts";
import type { ChainEnd } from "../tokenizer/chain-state.ts";

/** Tokens that there is room for at first. */
const TOKENS_MIN = 256;

/**
 * The token ids of one answer, as its client asked the engine to send them (`return_token_ids`), for the blocks that
 * they fill behind the prompt's. Ids beyond `tokensMax` are counted and not kept: the blocks before them are known all
 * the same.
 */
export class AnswerTokens {
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

  /** Another endpoint answers anew. */
  reset(): void {
    this.#kept = 0;
    this.#count = 0;
  }

  /** Takes the ids in a whole answer or in an event of a stream: OpenAI's JSON with vLLM's `token_ids` of one choice. */
  read(json: Buffer, start = 0, end: number = json.length): void {
    const name = json.indexOf(NAME, start);
    if (name < 0 || name >= end) return;
    let at = behindSpace(json, name + NAME.length);
    if (json[at] !== COLON) return;
    at = behindSpace(json, at + 1);
    if (json[at] !== BRACKET) return;
    for (at++; at < end && json[at] !== BRACKET_CLOSED; at++) {
      if (!isDigit(json[at])) continue;
      let token = 0;
      for (; isDigit(json[at]); at++) token = 10 * token + json[at]! - ZERO;
      this.#push(token);
      if (json[at] === BRACKET_CLOSED) return;
    }
  }

  /**
   * Two words per block that prompt and answer filled behind the prompt's full blocks; undefined where there is none, or
   * where the engine counted other tokens than it sent ids of. The last token was sampled and never computed.
   */
  lanes(outputTokens: number | undefined): Int32Array | undefined {
    if (outputTokens !== undefined && outputTokens !== this.#count) return undefined;
    const computed = Math.min(this.#kept, this.#count - 1);
    if (computed <= 0) return undefined;
    const lanes = this.#end.lanesBehind(this.#tokens.subarray(0, computed));
    return lanes.length === 0 ? undefined : lanes;
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

/** Between bare quotes it cannot stand inside a JSON string, where the quotes would be escaped. */
const NAME = Buffer.from('"token_ids"');
const COLON = 0x3a;
const BRACKET = 0x5b;
const BRACKET_CLOSED = 0x5d;
const SPACE = 0x20;
const ZERO = 0x30;

function behindSpace(json: Buffer, from: number): number {
  let at = from;
  while (json[at]! <= SPACE) at++;
  return at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
