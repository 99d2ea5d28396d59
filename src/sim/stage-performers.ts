import { SECOND_FLIGHTS } from "./hedging/second-flight.ts";
import type { StagePerformer } from "./path/stage-performer.ts";

/** What performs stages here of flights that may fail. */
export const STAGE_PERFORMERS: readonly StagePerformer[] = [SECOND_FLIGHTS];
