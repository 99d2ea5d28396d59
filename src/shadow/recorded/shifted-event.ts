import type { Micros } from "#core/base/units.ts";
import type { ScriptEvent } from "#sim/setting/simulation-options.ts";

/** An event on a clock that begins `start` later, with the times that are in it. What lies below `least` happens then. */
export function shiftedEvent<E extends ScriptEvent>(event: E, start: Micros, least = -Infinity): E {
  const at = Math.max(least, event.at - start);
  if (event.kind !== "rollout-restored") return { ...event, at };
  const { state } = event;
  return { ...event, at, state: { ...state, at: state.at - start, startedAt: state.startedAt - start } };
}
