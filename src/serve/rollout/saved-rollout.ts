import { checkProfile } from "#core/profile/check.ts";
import type { Agreement } from "#core/rollout/agreement.ts";
import type { SavedJudge } from "#core/rollout/judge/judge.ts";
import type { RolloutSpec } from "#core/rollout/rollout-input.ts";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { Micros } from "#core/base/units.ts";
import type { IntervalsView, StepView } from "#live/admin/rollout-view.ts";
import { bool, integer, listOf, NOTHING_BESIDE, optional, text, unchecked } from "#trace/codec/field-type.ts";
import { profiles } from "#trace/codec/profile-table.ts";
import { record } from "#trace/codec/record-type.ts";
import { rolloutState, rules } from "#trace/codec/rollout-table.ts";

/** Version of what is kept; another one is not read. */
const VERSION = 1;

/** Of what judges have seen; of another one the comparison begins anew. */
export const MEASURE_VERSION = 4;

/**
 * A rollout as it is kept: in a folder across restarts, and where replicas share it. Times are wall times in
 * microseconds since 1970.
 */
export interface SavedRollout extends Omit<RolloutSpec, "plan"> {
  readonly state: RolloutState;
  /** While it is planned: when its first window begins. */
  readonly startsAt?: Micros;
  readonly by?: string;
  /** It was promoted, and the policy was changed since: nobody makes that promotion again. */
  readonly overtaken?: boolean;
  readonly steps: readonly StepView[];
}

/** What its judge has seen, whole: large, and some seconds old, so that entries since then are in journals. */
export interface SavedMeasure {
  /** MEASURE_VERSION of who wrote it. */
  readonly version: number;
  /** Number of the first journal with what came after it. */
  readonly journal: number;
  readonly judge: SavedJudge;
  readonly agreements: readonly Agreement[];
  readonly intervals: readonly IntervalsView[];
  /** Wall time of the zero of the judge's clock. */
  readonly wallStartMicros: Micros;
}

/** `ended` are names of rollouts that were let go. */
export function rolloutsText(rollouts: readonly SavedRollout[], ended: readonly string[]): string {
  return JSON.stringify({ version: VERSION, rollouts, ended });
}

/** Reads what `rolloutsText` wrote; nothing where there is nothing. Throws an Error that names what is wrong, and where. */
export function savedRollouts(value: unknown): { readonly rollouts: SavedRollout[]; readonly ended: string[] } {
  if (value === undefined) return { rollouts: [], ended: [] };
  const { version, rollouts, ended } = saved.read(value, undefined, "", NOTHING_BESIDE);
  if (version !== VERSION) throw new Error(`version: expected ${VERSION}, got ${version}`);
  rollouts.forEach((rollout, i) => checkProfiles(rollout, `rollouts[${i}]`));
  return { rollouts: [...rollouts], ended: [...ended] };
}

const saved = record<{ version: number; rollouts: readonly SavedRollout[]; ended: readonly string[] }>({
  version: integer(1),
  rollouts: listOf(
    record<SavedRollout>({
      state: rolloutState,
      rules,
      profiles,
      steps: listOf(unchecked<StepView>("an object")),
      startsAt: optional(integer(0)),
      by: optional(text),
      overtaken: optional(bool),
    }),
  ),
  ended: listOf(text),
});

function checkProfiles(rollout: SavedRollout, path: string): void {
  for (const [name, spec] of Object.entries(rollout.profiles)) {
    const [problem] = checkProfile(spec);
    if (problem !== undefined) throw new Error(`${path}.profiles.${name}.${problem.path}: ${problem.message}`);
  }
}

/** A rollout's state on a clock that shows `byMicros` more at the same time. */
export function movedState(state: RolloutState, byMicros: Micros): RolloutState {
  return { ...state, at: state.at + byMicros, startedAt: state.startedAt + byMicros };
}
