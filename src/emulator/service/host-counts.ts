/** What became of the sequences that arrived: `arrived` = finished + aborted + failed + in flight. */
export interface HostCounts {
  readonly arrived: number;
  /** Came to their end by themselves. */
  readonly finished: number;
  /** Taken back: client gone, server stopping, or a fault. */
  readonly aborted: number;
  /** Lost with the engine. */
  readonly failed: number;
  readonly inFlight: number;
}
