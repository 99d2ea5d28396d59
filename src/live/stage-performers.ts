import { cascadeOf } from "./cascade/cascade-run.ts";
import { continuationOf } from "./continuation/stream-continuation.ts";
import { secondOf } from "./upstream/hedging/second-attempt.ts";
import type { StagePerformers } from "./upstream/stage-performer.ts";

/** What performs stages here, beside the one that a decision itself names. */
export const STAGE_PERFORMERS: StagePerformers = { stages: [continuationOf, cascadeOf], standbys: [secondOf] };
