import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import type { StagedOptions, StageFigures } from "#sim/path/stage-performer.ts";
import type { SimulateFlags } from "./simulate-flags.ts";

/** What `simulate` has of a stage beside the settings that it states itself. */
export interface StageOption {
  /** As the stage's figures have it. */
  readonly name: string;
  readonly flags: readonly (readonly [flags: string, meaning: string])[];
  /** Undefined where nobody asks for it. */
  readonly planOf?: (flags: SimulateFlags) => StagePlan | undefined;
  /** Its rows of the table, of its own figures. */
  readonly rowsOf: (figures: StageFigures["figures"]) => readonly (readonly [name: string, text: string])[];
}

/** A stage of the simulation, and the engines that it needs in place of those that flags name. */
export interface StagePlan {
  readonly stage: NonNullable<StagedOptions["stages"]>[number];
  readonly engines: readonly EngineSpec[];
}
