/** What an engine's steps take, as far as a router knows it; a linear model, in microseconds. */
export interface StepTimes {
  /** Of a step that computes nothing. */
  readonly stepMicros: number;
  readonly prefillTokenMicros: number;
  /** Of one more sequence in the step. */
  readonly sequenceMicros: number;
  /** Of one more token of context in the step. */
  readonly contextTokenMicros: number;
  /** Tokens that a step takes at most (max_num_batched_tokens). */
  readonly stepTokensMax: number;
}
