import type { AnswerDraws } from "./answer-draws.ts";
import type { Sampling } from "./sampling.ts";
import type { Piece, EngineTokenizer } from "../tokenizer/tokenizer.ts";

/** The answer to one prompt, decided before its first token: a real model's words are as little our business as this. */
export interface OutputPlan {
  /** Every token that will be computed, the ending one included. */
  readonly tokens: Int32Array;
  /** What the client sees more of after each token; "" for a token that shows nothing. */
  readonly texts: readonly string[];
  readonly finish: "stop" | "length";
  /** The stop string or token id that ended it; null for the natural end. */
  readonly stopReason: string | number | null;
}

export interface OutputLimits {
  readonly maxTokens: number;
  /** Tokens after which the answer ends by itself, the ending token included. */
  readonly naturalTokens: number;
  /** Tokens of the answer that the prompt holds already; undefined where that cannot be known. */
  readonly generated: number | undefined;
  /** Text that the answer must be, for tool calls and JSON; undefined for free text. */
  readonly forced: readonly Piece[] | undefined;
}

/** Draws an answer within a request's limits: same draws, same answer. */
export function planOutput(
  tokenizer: EngineTokenizer,
  random: AnswerDraws,
  sampling: Sampling,
  limits: OutputLimits,
): OutputPlan {
  const { minTokens, stopTokenIds, stop } = sampling;
  const { forced, maxTokens, generated = 0 } = limits;
  const natural = forced === undefined ? naturalEnd(sampling, limits.naturalTokens, generated) : forced.length + 1;
  for (let i = 0; i < generated; i++) tokenizer.draw(random, i === 0);
  const count = Math.min(maxTokens, natural);
  const tokens = new Int32Array(count);
  const texts: string[] = [];
  const stops = stop.length === 0 ? undefined : new StopSearch(stop, sampling.includeStop);
  for (let i = 0; i < count; i++) {
    if (i === natural - 1) {
      tokens[i] = tokenizer.endToken;
      texts.push("");
      return ended({ tokens, texts, finish: "stop", stopReason: null }, stops);
    }
    const piece = forced?.[i] ?? tokenizer.draw(random, i === 0 && limits.generated === 0);
    random.follow?.(piece.id);
    tokens[i] = piece.id;
    if (i >= minTokens && stopTokenIds.includes(piece.id)) {
      texts.push("");
      return ended({ tokens: tokens.slice(0, i + 1), texts, finish: "stop", stopReason: piece.id }, stops);
    }
    texts.push(piece.text);
    const found = stops?.add(piece.text, i >= minTokens);
    if (found === undefined) continue;
    return ended({ tokens: tokens.slice(0, i + 1), texts, finish: "stop", stopReason: found }, stops);
  }
  return ended({ tokens, texts, finish: "length", stopReason: null }, stops);
}

function naturalEnd({ ignoreEos, minTokens }: Sampling, naturalTokens: number, generated: number): number {
  return ignoreEos ? Number.POSITIVE_INFINITY : Math.max(1, naturalTokens - generated, minTokens + 1);
}

function ended(plan: OutputPlan, stops: StopSearch | undefined): OutputPlan {
  return stops === undefined ? plan : { ...plan, texts: stops.visible(plan.texts) };
}

/** Looks for stop strings across tokens, and holds back what may be the beginning of one, as vLLM's detokenizer does. */
class StopSearch {
  readonly #stop: readonly string[];
  readonly #includeStop: boolean;
  readonly #longest: number;
  #text = "";
  #cut: number | undefined;

  constructor(stop: readonly string[], includeStop: boolean) {
    this.#stop = stop;
    this.#includeStop = includeStop;
    this.#longest = Math.max(...stop.map((one) => one.length));
  }

  /** Appends a token's text; the stop string that it completed, if any. */
  add(text: string, armed: boolean): string | undefined {
    const from = Math.max(0, this.#text.length - this.#longest + 1);
    this.#text += text;
    if (!armed) return undefined;
    for (const one of this.#stop) {
      const at = this.#text.indexOf(one, from);
      if (at < 0) continue;
      this.#cut = this.#includeStop ? at + one.length : at;
      return one;
    }
    return undefined;
  }

  /** The texts with the stop string cut off and each token lagging by what might still become one. */
  visible(texts: readonly string[]): readonly string[] {
    const whole = this.#cut === undefined ? this.#text : this.#text.slice(0, this.#cut);
    const hold = this.#includeStop ? 0 : this.#longest - 1;
    let shown = 0;
    let seen = 0;
    return texts.map((text, index) => {
      seen += text.length;
      const end = index === texts.length - 1 ? whole.length : Math.min(whole.length, Math.max(shown, seen - hold));
      const delta = whole.slice(shown, end);
      shown = Math.max(shown, end);
      return delta;
    });
  }
}
