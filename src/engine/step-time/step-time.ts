import type { Micros } from "#core/base/units.ts";
import type { BatchShape } from "./batch-shape.ts";
import { CoefficientStepTime, type CoefficientSpec } from "./coefficients.ts";
import { KernelRooflineStepTime, type KernelRooflineSpec } from "./kernel-roofline.ts";
import { KernelTableStepTime, type KernelTableSpec } from "./kernel-table.ts";
import { MeasuredStepTime, type MeasuredSpec } from "./measured.ts";
import { RooflineStepTime, type RooflineSpec } from "./roofline.ts";
import { TrainedPhysicsStepTime, type TrainedPhysicsSpec } from "./trained-physics.ts";

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

export type StepTimeSpec =
  | CoefficientSpec
  | RooflineSpec
  | KernelRooflineSpec
  | TrainedPhysicsSpec
  | KernelTableSpec
  | MeasuredSpec;

/** The model of step times that a spec describes. */
export function createStepTime(spec: StepTimeSpec): StepTime {
  switch (spec.kind) {
    case "coefficients":
      return new CoefficientStepTime(spec);
    case "roofline":
      return new RooflineStepTime(spec);
    case "kernel-roofline":
      return new KernelRooflineStepTime(spec);
    case "trained-physics":
      return new TrainedPhysicsStepTime(spec);
    case "kernel-table":
      return new KernelTableStepTime(spec);
    case "measured":
      return new MeasuredStepTime(spec);
  }
}
