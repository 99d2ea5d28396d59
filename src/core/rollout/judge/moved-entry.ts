import type { Micros } from "../../base/units.ts";
import type { JudgeEntry } from "./judge-entry.ts";

/** What a judge is given, on a clock that shows `byMicros` more at the same time. */
export function movedEntry(entry: JudgeEntry, byMicros: Micros): JudgeEntry {
  switch (entry.kind) {
    case "arrived":
      return { ...entry, windowEndAt: entry.windowEndAt + byMicros };
    case "advanced":
      return { ...entry, at: entry.at + byMicros };
    case "ended": {
      const { outcome, awaited } = entry;
      return {
        ...entry,
        outcome: { ...outcome, stretch: outcome.stretch + byMicros },
        ...(awaited && { awaited: { ...awaited, endAt: awaited.endAt + byMicros } }),
      };
    }
    case "withdrawn":
    case "predicted":
    case "stage":
      return entry;
  }
}
