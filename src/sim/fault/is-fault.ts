import type { ScriptEvent, SimulationOptions } from "../setting/simulation-options.ts";

/** Whether requests may have to leave an endpoint, or are to be watched all the same. */
export function mayFail({ rules, scaling, fleetEvents = [] }: SimulationOptions): boolean {
  const leave = scaling !== undefined && scaling.drain !== "wait";
  return leave || rules !== undefined || fleetEvents.some(isFault);
}

/** Whether requests may fail by it: where none can, nothing is watched. */
function isFault(event: ScriptEvent): boolean {
  if (event.kind === "endpoint-left") return event.lost === true;
  return (
    event.kind.startsWith("engine-") ||
    event.kind === "answers-cut" ||
    event.kind === "endpoint-suspended" ||
    event.kind === "endpoint-slept"
  );
}
