import { ANSWERS_ELSEWHERE } from "./continuation/answer-elsewhere.ts";
import { HandoffDesk } from "./handoff/handoff-desk.ts";
import { SECOND_FLIGHTS } from "./hedging/second-flight.ts";
import type { AheadHost, AheadOfFlights, OnwardPerformer, StagePerformer } from "./path/stage-performer.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";

/** What performs stages here of flights that may fail. */
export const STAGE_PERFORMERS: readonly StagePerformer[] = [SECOND_FLIGHTS];
/** What has answers go on that break. */
export const ONWARD: OnwardPerformer = ANSWERS_ELSEWHERE;

/** What performs the stage that a decision itself names. */
export const aheadOfFlights = (options: SimulationOptions, host: AheadHost): AheadOfFlights =>
  new HandoffDesk(options, host);
