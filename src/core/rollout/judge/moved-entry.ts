import type { Micros } from "../../base/units.ts";
import type { JudgeEntry } from "./judge-entry.ts";
import { movedOutcome } from "./outcome.ts";

/** What a judge is given, on a clock that shows `byMicros` more at the same time. */
export function movedEntry(entry: JudgeEntry, byMicros: Micros): JudgeEntry {
  switch (entry.kind) {
    case "arrived":
      return { ...entry, windowEndAt: entry.windowEndAt + byMicros, ...movedSlice(entry, byMicros) };
    case "withdrawn":
      return { ...entry, ...movedSlice(entry, byMicros) };
    case "advanced":
      return { ...entry, at: entry.at + byMicros };
    case "ended": {
      const { outcome, awaited } = entry;
      return {
        ...entry,
        outcome: movedOutcome(outcome, byMicros),
        ...(awaited && { awaited: { ...awaited, endAt: awaited.endAt + byMicros } }),
      };
    }
    case "predicted":
    case "stage":
      return entry;
  }
}

function movedSlice({ sliceAt }: { readonly sliceAt?: Micros }, byMicros: Micros): { readonly sliceAt?: Micros } {
  return sliceAt === undefined ? {} : { sliceAt: sliceAt + byMicros };
}
