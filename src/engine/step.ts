import type { Sequence } from "./sequence.ts";
import { type BatchShape, clearShape, emptyShape } from "./step-time/batch-shape.ts";

/** A composed step: what it computes, and which requests get a token from it, in the order of the batch. */
export class Step {
  readonly shape: BatchShape = emptyShape();
  /** Requests in the step, those without a token from it included. */
  members = 0;
  /** Time for KV blocks that are copied back for it. */
  transferMicros = 0;
  /** Requests that get a token. */
  yields = 0;
  readonly #yielding: Sequence[] = [];
  readonly #orders: number[] = [];

  clear(): void {
    clearShape(this.shape);
    this.members = 0;
    this.transferMicros = 0;
    this.yields = 0;
  }

  /** The request gets a token when the step ends. */
  addYield(sequence: Sequence): void {
    this.#yielding[this.yields] = sequence;
    this.#orders[this.yields] = sequence.order;
    this.yields++;
  }

  /** The request that gets the i-th token; undefined if it has left (its object may serve another one by now). */
  yieldingAt(i: number): Sequence | undefined {
    const sequence = this.#yielding[i];
    return sequence !== undefined && sequence.order === this.#orders[i] ? sequence : undefined;
  }
}
