import { CONTINUATION } from "./path/continuation/continuation.ts";
import { RETRIES } from "./path/retry-policy.ts";
import { HEDGING } from "./path/hedging/hedging-kind.ts";
import type { StageCount, StageKind, StageSetting, StageSettings } from "./path/stage-kind.ts";

/** What a request's path may have, beside stages that need neither settings nor counts of their own. */
export const STAGES = [RETRIES, HEDGING, CONTINUATION] as const satisfies readonly StageKind[];

type KeysOf<T> = T extends unknown ? keyof T & string : never;
type Stage = (typeof STAGES)[number];
type CountKey = KeysOf<Stage["counts"]>;
/** Those counts that have such a property. */
type KeysWith<P> = Of<Stage["counts"], P>;
type Of<T, P> = T extends unknown ? { [K in keyof T & string]: T[K] extends P ? K : never }[keyof T & string] : never;

type SettingKey = KeysOf<Stage["settings"]>;
type UsualKey = Of<Stage["settings"], { readonly usual: number }>;

/** By key of the configuration's `limits`. */
export type StageLimits = { readonly [K in UsualKey]: number } & {
  readonly [K in Exclude<SettingKey, UsualKey>]?: number | undefined;
};
/** What stages count, each by its label's values, if it has one; they only grow. */
export type StageCounts = {
  readonly [K in KeysWith<{ readonly label: string }>]: Record<string, number>;
} & { [K in Exclude<CountKey, KeysWith<{ readonly label: string }>>]: number };
type SimulatedKey = KeysWith<{ readonly row: string }>;
type TotalKey = KeysWith<{ readonly total: string }>;
/** The same as a simulation has it. */
export type SimulatedCounts = { readonly [K in Exclude<SimulatedKey, TotalKey>]: Record<string, number> } & {
  [K in TotalKey]: number;
};

export const STAGE_SETTINGS: readonly (readonly [key: string, setting: StageSetting])[] = STAGES.flatMap(
  ({ settings }) => Object.entries(settings),
);
export const STAGE_COUNTS: readonly (readonly [key: CountKey, count: StageCount])[] = STAGES.flatMap(
  ({ counts }) => Object.entries(counts) as [CountKey, StageCount][],
);
/** Those that a simulation has by label, and as a sum. */
export const SIMULATED_COUNTS = STAGE_COUNTS.filter(
  ([, { row, total }]) => row !== undefined && total === undefined,
) as readonly (readonly [key: Exclude<SimulatedKey, TotalKey>, count: StageCount])[];
export const SIMULATED_TOTALS = STAGE_COUNTS.filter(([, { total }]) => total !== undefined) as readonly (readonly [
  key: TotalKey,
  count: StageCount,
])[];
/** What stands for settings that nobody set. */
export const STAGE_LIMITS = Object.fromEntries(
  STAGE_SETTINGS.map(([key, { usual }]) => [key, usual]),
) as unknown as StageLimits;

/** Of limits, those that are stages'. */
export function stageSettings(limits: { readonly [K in SettingKey]?: number | undefined }): StageSettings {
  const all: StageSettings = limits;
  return Object.fromEntries(STAGE_SETTINGS.map(([key]) => [key, all[key]]));
}

/** Before the first request. */
export function newStageCounts(): StageCounts {
  const counts = STAGE_COUNTS.map(([key, { label }]): [string, unknown] => [key, label === undefined ? 0 : {}]);
  return Object.fromEntries(counts) as unknown as StageCounts;
}

/** Before the first simulated one. */
export function newSimulatedCounts(): SimulatedCounts {
  const labelled = SIMULATED_COUNTS.map(([key]): [string, unknown] => [key, {}]);
  const totals = SIMULATED_TOTALS.map(([key]): [string, unknown] => [key, 0]);
  return Object.fromEntries([...labelled, ...totals]) as unknown as SimulatedCounts;
}
