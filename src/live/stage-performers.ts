import type { PathRouter } from "#core/path/path-router.ts";
import type { StageFamily } from "./base/stage-family.ts";
import {
  CASCADE_FAMILIES,
  type CascadeOptions,
  type Cascades,
  createCascades,
  judgedAnswers,
} from "./cascade/cascades.ts";
import { type ContinuationOptions, keptStream, streamKeeper } from "./continuation/stream-continuation.ts";
import { remotePrefills } from "./prefill/remote-prefill.ts";
import { secondOf } from "./upstream/hedging/second-attempt.ts";
import type { StagePerformers } from "./upstream/stage-performer.ts";

/** What performs stages in one gateway. */
export const stagePerformers = ({ clients = {}, cascade }: StageSections): StagePerformers => ({
  keep: streamKeeper(clients),
  stages: [keptStream, ...judgedAnswers(cascade)],
  aheadOf: remotePrefills(),
  standbys: [secondOf],
});

/** Sections of the configuration that stages have of their own. */
export interface StageSections {
  readonly cascade?: CascadeOptions;
  readonly clients?: ContinuationOptions;
}

/** What judges answers. */
export type StageJudges = Cascades;

/** Undefined where nothing judges any. */
export function openJudges({ cascade }: StageSections, router: PathRouter): StageJudges | undefined {
  return createCascades(cascade, router);
}

/** Metrics of what judges answers. */
export const JUDGE_FAMILIES: readonly StageFamily<StageJudges>[] = CASCADE_FAMILIES;
