/** The threads that carry requests beside the one that decides. */
export interface WorkersStatus {
  readonly workers: readonly WorkerStatus[];
  /** Started again after they ended by themselves. */
  readonly restarts: number;
  /** Requests that ended with their worker. */
  readonly requestsLost: number;
}

export interface WorkerStatus {
  /** Its place, from 1. */
  readonly worker: number;
  readonly isUp: boolean;
  readonly requestsInFlight: number;
}
