import { giveJudge, type JudgeEntry } from "#core/rollout/judge/judge-entry.ts";
import { Judge, type SavedJudge } from "#core/rollout/judge/judge.ts";
import { movedJudge } from "#core/rollout/judge/moved-judge.ts";
import type { Micros } from "#core/base/units.ts";
import { MEASURE_VERSION, type SavedMeasure, type SavedRollout } from "./saved-rollout.ts";

/** Line that a journal of measures begins with. */
export interface JournalOpening {
  readonly version: number;
  /** Wall time of the zero of the clock that the entries behind it have. */
  readonly wallStartMicros: Micros;
}

/**
 * What a judge had seen when its process ended: as it was saved whole, and the entries since, on a clock whose zero is at
 * `wallStartMicros`. Throws an Error that names what is wrong.
 */
export function replayedMeasure(
  { state: { plan }, rules }: SavedRollout,
  whole: SavedMeasure | undefined,
  lines: readonly string[],
  wallStartMicros: Micros,
): SavedJudge | undefined {
  let judge = whole === undefined ? undefined : new Judge({ plan, ...rules }, whole.judge);
  let zero = whole?.wallStartMicros ?? wallStartMicros;
  const moveTo = (next: Micros) => {
    if (judge !== undefined && next !== zero) {
      judge = new Judge({ plan, ...rules }, movedJudge(judge.saved(), zero - next));
    }
    zero = next;
  };
  for (const line of lines) {
    const entry = entryOf(line);
    if (entry === undefined) continue;
    if ("version" in entry) {
      if (entry.version !== MEASURE_VERSION) throw new Error(versionText(entry.version));
      moveTo(entry.wallStartMicros);
    } else giveJudge((judge ??= new Judge({ plan, ...rules })), entry);
  }
  // Whatever had not ended is gone with its process.
  return judge === undefined ? undefined : movedJudge(judge.saved(), zero - wallStartMicros);
}

/** Undefined for a line that is no whole one: its process was killed while it was written. */
function entryOf(line: string): JournalOpening | JudgeEntry | undefined {
  try {
    return JSON.parse(line) as JournalOpening | JudgeEntry;
  } catch {
    return undefined;
  }
}

export function versionText(version: unknown): string {
  return `version: expected ${MEASURE_VERSION}, got ${String(version)}`;
}
