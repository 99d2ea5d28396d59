import { DESTROY_CLIENT, plain } from "./plain-effect.ts";
import type { RequestEffect } from "./request-effect.ts";
import type { RequestEvent } from "./request-event.ts";
import type { RequestState } from "./request-state.ts";
import type { Step } from "./step.ts";

export const NOTHING: readonly RequestEffect[] = [];
export const DESTROYED: readonly RequestEffect[] = [DESTROY_CLIENT];
const STALLED: readonly RequestEffect[] = [plain("report-client-stalled"), DESTROY_CLIENT];

/** Steps that leave the state as it is. */
export const late = (state: RequestState): Step => ({ state, effects: NOTHING });
export const stalled = (state: RequestState): Step => ({ state, effects: STALLED });
export const destroyed = (state: RequestState): Step => ({ state, effects: DESTROYED });

export function illegal(state: RequestState, event: RequestEvent): Step {
  return { state, effects: [{ kind: "report-illegal", state: state.kind, event: event.kind }] };
}
