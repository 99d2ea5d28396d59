/** A model of a cascade. */
export interface CascadeStep {
  readonly model: string;
  /**
   * Least mean log-probability (natural logarithm, at most 0) of an answer's tokens with which it is kept; one below goes
   * to the next model. Absent of the last step, whose answers are kept.
   */
  readonly logprobMin?: number;
}

/** Models that are asked one after another, the smallest first, until one is sure of its answer. */
export interface CascadeSpec {
  /** What clients ask for. */
  readonly name: string;
  /** Two or more. */
  readonly steps: readonly CascadeStep[];
  /** Tokens of an answer that are looked at; Infinity for all. A stream is held back until then. */
  readonly judgedTokensMax: number;
}

/** Over all requests together. */
export interface CascadeLimits {
  /** Most requests under way at a later model than their first; beyond it answers are kept however low their confidence. */
  readonly escalationsInFlightMax: number;
  /** Bytes of answers that are held back; beyond it they are let go, unjudged. */
  readonly heldBytesMax: number;
}
