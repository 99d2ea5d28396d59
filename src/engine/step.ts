import type { Sequence } from "./sequence.ts";
import { type BatchShape, clearShape, emptyShape } from "./step-time/batch-shape.ts";

/** A composed step: what it computes, and which requests get a token from it, in the order of the batch. */
export class Step {
  readonly shape: BatchShape = emptyShape();
  /** Requests in the step, those without a token from it included. */
  members = 0;
  /** Its number among those composed, and the rows of the cohort in it, which are its first members. */
  number = 0;
  cohort = 0;
  /** Time for KV blocks that are copied back for it. */
  transferMicros = 0;
  /** Requests beside the cohort that get a token. */
  yields = 0;
  readonly #yielding: Sequence[] = [];
  readonly #orders: number[] = [];

  clear(): void {
    clearShape(this.shape);
    this.members = 0;
    this.cohort = 0;
    this.transferMicros = 0;
    this.yields = 0;
  }

  /** The request gets a token when the step ends. */
  addYield(sequence: Sequence): void {
    this.#yielding[this.yields] = sequence;
    this.#orders[this.yields] = sequence.order;
    this.yields++;
  }

  /** Nothing was entered but its cohort, whose members will be one by one. */
  withoutCohort(): void {
    clearShape(this.shape);
    this.members = 0;
    this.cohort = 0;
  }

  /** These get a token, ahead of the others, in place of the cohort. */
  yieldFirst(members: readonly Sequence[]): void {
    this.cohort = 0;
    this.#yielding.splice(0, 0, ...members);
    this.#orders.splice(0, 0, ...members.map(({ order }) => order));
    this.yields += members.length;
  }

  /** The request that gets the i-th token; undefined if it has left (its object may serve another one by now). */
  yieldingAt(i: number): Sequence | undefined {
    const sequence = this.#yielding[i];
    return sequence !== undefined && sequence.order === this.#orders[i] ? sequence : undefined;
  }
}
