import type { Micros } from "../../base/units.ts";
import { movedOrder } from "./arrival-order.ts";
import type { SavedJudge } from "./judge.ts";
import { movedOutcome } from "./outcome.ts";

/**
 * A judge as it was saved, on a clock that shows `byMicros` more at the same time. The requests that had not ended are
 * gone with the process that served them, so their windows wait for nobody; unless it still runs.
 */
export function movedJudge(saved: SavedJudge, byMicros: Micros, { runs = false } = {}): SavedJudge {
  return {
    ...saved,
    windows: saved.windows.map(([window, endAt, open, arms]) => {
      if (runs) return [window, endAt + byMicros, open, arms];
      const waiting = saved.awaited?.waiting.filter(({ outcome }) => outcome.window === window).length ?? 0;
      return [window, endAt + byMicros, waiting, arms];
    }),
    ...(saved.order && { order: movedOrder(saved.order, byMicros, runs) }),
    ...(saved.awaited && {
      awaited: {
        ...saved.awaited,
        waiting: saved.awaited.waiting.map((one) => ({
          ...one,
          endAt: one.endAt + byMicros,
          outcome: movedOutcome(one.outcome, byMicros),
        })),
      },
    }),
    history: saved.history.map((one) => ({ ...one, endAt: one.endAt + byMicros })),
    guard: {
      ...saved.guard,
      arms: saved.guard.arms.map((stretches) => stretches.map((one) => ({ ...one, number: one.number + byMicros }))),
    },
  };
}
