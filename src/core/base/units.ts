/** Integer microseconds on the host's clock: wall clock live, virtual time simulated. */
export type Micros = number;

export const MICROS_PER_MILLI = 1_000;
export const MICROS_PER_SECOND = 1_000_000;
export const MILLIS_PER_SECOND = 1_000;

/** Tokens of one request beyond this are a broken count, not a prompt or an answer. */
export const REQUEST_TOKENS_MAX = 100_000_000;
