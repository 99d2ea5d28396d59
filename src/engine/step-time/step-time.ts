import type { Micros } from "#core/base/units.ts";
import type { BatchShape } from "./batch-shape.ts";

/** How long a step takes. An implementation may count the steps that it was asked for, so an engine owns its own. */
export interface StepTime {
  /** Microseconds, not yet rounded; the engine truncates and makes it at least 1. */
  micros(shape: Readonly<BatchShape>): number;
  /**
   * Of a step on several ranks that share experts, a shape each; an empty one is of a rank that has nothing to compute.
   * The longest of them all where this is left out.
   */
  together?(shapes: readonly Readonly<BatchShape>[]): number;
  /** True when the answer depends on the shape alone, so that steps may be computed ahead. */
  readonly stateless: boolean;
  /** Where a record holds when the next step may start at the earliest. */
  nextStartAt?(): Micros | undefined;
}
