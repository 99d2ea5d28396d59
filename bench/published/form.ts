import type { EngineConfig } from "#engine/config.ts";
import type { PublishedRun } from "./runs.ts";

export interface Fitted {
  readonly name: string;
  /** What it is believed to be before any run is seen, over what it is now. */
  readonly believed: number;
  /** How far from that it may well be, as a logarithm. */
  readonly spread: number;
}

/** A formula for step times whose constants are fitted to published runs, as factors of what they are now. */
export interface Form {
  readonly name: string;
  readonly fitted: readonly Fitted[];
  /** The engine that a run was on, with these factors; undefined where the formula has no such model. */
  engineFor(run: PublishedRun, factors: readonly number[]): EngineConfig | undefined;
}
