/** What really happened to one request of a trace. Times in microseconds; NaN is never or not seen. */
export interface Observed {
  /** Endpoint that answered last; "" for none. */
  readonly endpoint: string;
  /** Answered whole. */
  readonly ok: boolean;
  /** Why its times are no evidence of a model's error, where that is not all: see uncomparedReason. */
  readonly uncompared?: string | undefined;
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  /** Of one answer, where it had several side by side. */
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Endpoints that it was sent to, one after another: 1 where nothing failed. */
  readonly attempts: number;
  /** From its arrival until it was sent to the last of them; 0 for the first. Part of both times above. */
  readonly retriedMicros: number;
  /** Of these, what it waited for its turn in the gateway; 0 where it is left out. */
  readonly queuedMicros?: number;
  /** From when another endpoint had computed its prompt to its first token; left out where none did. */
  readonly handoverMicros?: number;
  /** Before its arrival, while the gateway made tokens of its prompt; part of no other time, 0 where it is left out. */
  readonly heldMicros?: number;
}
