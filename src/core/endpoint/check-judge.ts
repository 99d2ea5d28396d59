import type { Micros } from "../base/units.ts";

/** When health checks are believed. */
export interface CheckRules {
  readonly intervalMicros: Micros;
  /**
   * Checks in a row that fail until their server counts as unhealthy, and that succeed until it is well again; at least
   * 1.
   */
  readonly unhealthyAfter: number;
  readonly healthyAfter: number;
}

/** Judges from its health checks alone whether a server is healthy; it is at the start. Has no clock. */
export class CheckJudge {
  readonly #rules: CheckRules;
  #healthy = true;
  /** Results in a row that contradict the verdict. */
  #against = 0;

  constructor(rules: CheckRules) {
    this.#rules = rules;
  }

  get healthy(): boolean {
    return this.#healthy;
  }

  /** A check succeeded or failed; true where the verdict changes with it. */
  checked(succeeded: boolean): boolean {
    this.#against = succeeded === this.#healthy ? 0 : this.#against + 1;
    if (this.#against < (this.#healthy ? this.#rules.unhealthyAfter : this.#rules.healthyAfter)) return false;
    this.#healthy = succeeded;
    this.#against = 0;
    return true;
  }
}
