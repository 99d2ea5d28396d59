import type { ScriptEvent } from "../simulation-options.ts";

/** Whether requests may fail by it: where none can, nothing is watched. */
export function isFault(event: ScriptEvent): boolean {
  if (event.kind === "endpoint-left") return event.lost === true;
  return event.kind.startsWith("engine-") || event.kind === "answers-cut" || event.kind === "endpoint-suspended";
}
