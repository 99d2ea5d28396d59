import { mix32, randomFor } from "#core/base/random.ts";
import type { EngineTokenizer } from "../tokenizer/tokenizer.ts";
import { LOGPROBS_MAX } from "../generation/sampling.ts";

interface Score {
  readonly id: number;
  readonly text: string;
  readonly logprob: number;
}

/** `logprobs` of a chat choice: each token with its `top` best alternatives, itself first. */
export function chatLogprobs(tokenizer: EngineTokenizer, tokens: Int32Array, top: number): unknown {
  const entry = ({ text, logprob }: Score) => ({ token: text, logprob, bytes: [...Buffer.from(text)] });
  const content = Array.from(tokens, (id) => {
    const scores = alternatives(tokenizer, id, Math.max(1, top));
    const [own] = scores;
    return { ...entry(own ?? { id, text: "", logprob: 0 }), top_logprobs: scores.slice(0, top).map(entry) };
  });
  return { content };
}

/**
 * `logprobs` of a completion choice. The first token of an echoed prompt has no score.
 * @param offset characters before the first token
 * @param unscored leading tokens without a score: 1 when the prompt is echoed, else 0
 */
export function completionLogprobs(
  tokenizer: EngineTokenizer,
  tokens: readonly number[],
  top: number,
  offset: number,
  unscored: number,
): unknown {
  const offsets: number[] = [];
  const scores: (number | null)[] = [];
  const texts: string[] = [];
  const tops: (Record<string, number> | null)[] = [];
  let at = offset;
  for (const [index, id] of tokens.entries()) {
    const ranked = alternatives(tokenizer, id, Math.max(1, top));
    const text = ranked[0]?.text ?? "";
    offsets.push(at);
    texts.push(text);
    at += text.length;
    scores.push(index < unscored ? null : (ranked[0]?.logprob ?? 0));
    tops.push(index < unscored ? null : Object.fromEntries(ranked.map((one) => [one.text, one.logprob])));
  }
  return { text_offset: offsets, token_logprobs: scores, tokens: texts, top_logprobs: tops };
}

/** `prompt_logprobs`: null for the first token, then each token and the `top` best in its place. */
export function promptLogprobs(tokenizer: EngineTokenizer, prompt: Int32Array, top: number): unknown {
  return Array.from(prompt, (id, index) => {
    if (index === 0) return null;
    const [own, ...others] = alternatives(tokenizer, id, top + 1);
    const ranked = own === undefined ? others : [own, ...others];
    return Object.fromEntries(
      ranked.map(({ id: token, text, logprob }, rank) => [
        String(token),
        { logprob, rank: rank === 0 ? top + 1 : rank, decoded_token: text },
      ]),
    );
  });
}

/** Tokens whose alternatives are remembered, per tokenizer. */
const REMEMBERED_MAX = 4_096;
const remembered = new WeakMap<EngineTokenizer, Map<number, readonly Score[]>>();

/** A token and `count - 1` others with falling log probabilities, the same for the same token. */
function alternatives(tokenizer: EngineTokenizer, id: number, count: number): readonly Score[] {
  const known = remembered.get(tokenizer) ?? new Map<number, readonly Score[]>();
  remembered.set(tokenizer, known);
  let scores = known.get(id);
  if (scores === undefined) {
    if (known.size >= REMEMBERED_MAX) known.clear();
    scores = drawAlternatives(tokenizer, id, LOGPROBS_MAX + 1);
    known.set(id, scores);
  }
  return scores.length === count ? scores : scores.slice(0, count);
}

function drawAlternatives(tokenizer: EngineTokenizer, id: number, count: number): readonly Score[] {
  const random = randomFor(mix32(id), 0);
  const scores = [{ id, text: tokenizer.decode(id), logprob: -0.25 - random.below(1_000) / 4_000 }];
  const taken = new Set(scores.map((score) => score.text));
  while (scores.length < count) {
    const { id: other, text } = tokenizer.draw(random, false);
    if (taken.has(text)) continue;
    taken.add(text);
    scores.push({ id: other, text, logprob: -1 - scores.length / 2 });
  }
  return scores;
}
