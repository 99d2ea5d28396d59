/** Fewer give an interval that is wider than it need be; more narrow it by little. */
const REPLICAS_MIN = 3;
const REPLICAS_MAX = 20;
/** Part of the processor time of an interval that an evaluation may take; fits take theirs, and lines are replayed. */
const EVALUATION_PART = 0.5;

/** How many replicas an evaluation affords within its part of the time until the next, by what the last ones took. */
export class ReplicaBudget {
  readonly #cpuMicros: number;
  #cpuMicrosPerRequest = 0;

  /** `cpuMicros`: processor time from one evaluation to the next. */
  constructor(cpuMicros: number) {
    this.#cpuMicros = EVALUATION_PART * cpuMicros;
  }

  /** For so many requests in one simulation of all candidates; 0 where there is no time for enough. */
  replicasFor(requests: number): number {
    // What the first evaluation takes is not known before it.
    if (this.#cpuMicrosPerRequest === 0) return REPLICAS_MIN;
    const simulations = Math.floor(this.#cpuMicros / (requests * this.#cpuMicrosPerRequest));
    return simulations > REPLICAS_MIN ? Math.min(REPLICAS_MAX, simulations - 1) : 0;
  }

  /** So many requests were simulated, all simulations together. */
  spent(requests: number, cpuMicros: number): void {
    this.#cpuMicrosPerRequest = cpuMicros / requests;
  }
}
