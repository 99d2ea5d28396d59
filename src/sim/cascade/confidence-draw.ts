import type { Random } from "#core/base/random.ts";

/**
 * How sure a model is of its answers. An answer's mean log-probability is drawn from a normal distribution of its own,
 * whatever the prompt, whoever answers before, and however long it is; what is judged by its first n tokens is that, and
 * an error of `tokenDeviation / sqrt(n)`. A draw above 0 counts as 0.
 */
export interface Confidence {
  /** Of answers' means; natural logarithm, at most 0. */
  readonly mean: number;
  readonly deviation: number;
  /** Of single tokens within an answer. */
  readonly tokenDeviation: number;
}

/** What an answer's first so many tokens are worth on average: a draw of the model's distribution. */
export function confidenceDraw(
  { mean, deviation, tokenDeviation }: Confidence,
  tokens: number,
  random: Random,
): number {
  const answer = mean + deviation * normal(random);
  return Math.min(0, answer + (tokenDeviation / Math.sqrt(tokens)) * normal(random));
}

/**
 * Twelve uniform draws less six, which have mean 0 and deviation 1 and are nearly normal up to three deviations: additions
 * alone, so that every machine draws the same.
 */
function normal(random: Random): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.next();
  return sum;
}
