import { CoefficientStepTime, type CoefficientSpec } from "./coefficients.ts";
import { KernelRooflineStepTime, type KernelRooflineSpec } from "./kernel-roofline.ts";
import { KernelTableStepTime, type KernelTableSpec } from "./kernel-table.ts";
import { MeasuredStepTime, type MeasuredSpec } from "./measured.ts";
import { RooflineStepTime, type RooflineSpec } from "./roofline.ts";
import type { StepTime } from "./step-time.ts";
import { TrainedPhysicsStepTime, type TrainedPhysicsSpec } from "./trained-physics.ts";

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
