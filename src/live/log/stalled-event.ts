import type { FaultEvent } from "./fault-log.ts";

/** A client does not read what waits for it. `endpoint` is "" where none was chosen. */
export function stalledEvent(requestId: string, endpoint: string): FaultEvent {
  return {
    kind: "client-stalled",
    requestId,
    endpoint,
    detail: "it read nothing while bytes waited for it, longer than limits.writeStallMillisMax",
    done: "its connection was closed and the engine stopped",
  };
}
