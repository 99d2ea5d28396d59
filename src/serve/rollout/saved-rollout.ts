import { checkProfile } from "#core/profile/check.ts";
import type { Agreement } from "#core/rollout/agreement.ts";
import type { SavedJudge } from "#core/rollout/judge/judge.ts";
import type { RolloutSpec } from "#core/rollout/rollout-input.ts";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { Micros } from "#core/units.ts";
import type { IntervalsView, StepView } from "#live/rollout/rollout-view.ts";
import { Fields } from "#trace/fields.ts";
import { decodeRolloutState, decodeSpec } from "#trace/rollout-codec.ts";

/** Version of what is kept; another one is not read. */
const VERSION = 1;

/** Of what judges have seen; of another one the comparison begins anew. */
export const MEASURE_VERSION = 3;

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
  const fields = new Fields(value, "");
  const version = fields.integer("version", 1);
  if (version !== VERSION) throw new Error(`version: expected ${VERSION}, got ${version}`);
  const rollouts = fields.list("rollouts").map((entry, i) => savedRollout(new Fields(entry, `rollouts[${i}]`)));
  return { rollouts, ended: fields.strings("ended") };
}

function savedRollout(fields: Fields): SavedRollout {
  const state = decodeRolloutState(fields.object("state"));
  const { rules, profiles } = decodeSpec(fields, state.plan);
  for (const [name, spec] of Object.entries(profiles)) {
    const [problem] = checkProfile(spec);
    if (problem !== undefined)
      throw new Error(`${fields.pathOf("profiles")}.${name}.${problem.path}: ${problem.message}`);
  }
  const steps = fields.list("steps") as readonly StepView[];
  const startsAt = fields.has("startsAt")
    ? { startsAt: fields.integer("startsAt", 0), by: fields.string("by", "") }
    : {};
  const overtaken = fields.has("overtaken") && fields.boolean("overtaken", false) ? { overtaken: true } : {};
  return { state, rules, profiles, steps, ...startsAt, ...overtaken };
}

/** A rollout's state on a clock that shows `byMicros` more at the same time. */
export function movedState(state: RolloutState, byMicros: Micros): RolloutState {
  return { ...state, at: state.at + byMicros, startedAt: state.startedAt + byMicros };
}
