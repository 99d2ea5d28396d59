import { RETRIES } from "./path/retry-policy.ts";
import { HEDGING } from "./path/hedging/hedging-kind.ts";
import type { StageCount, StageKind, StageSetting, StageSettings } from "./path/stage-kind.ts";

/** What a request's path may have, beside stages that need neither settings nor counts of their own. */
export const STAGES = [RETRIES, HEDGING] as const satisfies readonly StageKind[];

type KeysOf<T> = T extends unknown ? keyof T & string : never;
type Stage = (typeof STAGES)[number];
type CountKey = KeysOf<Stage["counts"]>;

/** By key of the configuration's `limits`. */
export type StageLimits = { readonly [K in KeysOf<Stage["settings"]>]?: number | undefined };
/** What stages count, each by its label's values; they only grow. */
export type StageCounts = { readonly [K in CountKey]: Record<string, number> };

export const STAGE_SETTINGS: readonly (readonly [key: string, setting: StageSetting])[] = STAGES.flatMap(
  ({ settings }) => Object.entries(settings),
);
export const STAGE_COUNTS: readonly (readonly [key: CountKey, count: StageCount])[] = STAGES.flatMap(
  ({ counts }) => Object.entries(counts) as [CountKey, StageCount][],
);
/** What stands for settings that nobody set. */
export const STAGE_LIMITS: StageLimits = Object.fromEntries(STAGE_SETTINGS.map(([key, { usual }]) => [key, usual]));

/** Of limits, those that are stages'. */
export function stageSettings(limits: StageLimits): StageSettings {
  const all: StageSettings = limits;
  return Object.fromEntries(STAGE_SETTINGS.map(([key]) => [key, all[key]]));
}

/** Before the first request. */
export function newStageCounts(): StageCounts {
  return Object.fromEntries(STAGE_COUNTS.map(([key]) => [key, {}])) as unknown as StageCounts;
}
