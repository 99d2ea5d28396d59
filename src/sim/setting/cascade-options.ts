import type { CascadeLimits, CascadeSpec } from "#core/cascade/cascade-spec.ts";

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

/** Every request asks for one cascade. An answer has the same length whichever model gives it. */
export interface SimulatedCascade extends CascadeLimits {
  readonly spec: CascadeSpec;
  /** Of each step, in order; the last one's is never asked for. */
  readonly confidence: readonly Confidence[];
}

/** What became of the answers. */
export interface CascadeFigures {
  /** Answers that were given up, by step. */
  readonly escalated: readonly number[];
  /** Answers that were kept, by reason; those of the last step are not among them. */
  readonly kept: Readonly<Record<string, number>>;
  /** Of all requests, those that left their first model. */
  readonly escalatedShare: number;
}
