import { SECOND_FLIGHTS } from "./hedging/second-flight.ts";
import type { StagePerformer } from "./path/standby.ts";

/** What performs stages of the catalogue here, from the first look at a flight on. */
export const STAGE_PERFORMERS: readonly StagePerformer[] = [SECOND_FLIGHTS];
