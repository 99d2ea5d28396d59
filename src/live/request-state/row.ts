import type { EventKind, RequestEvent } from "./request-event.ts";
import type { RequestState } from "./request-state.ts";
import type { Step } from "./step.ts";

export type StateKind = RequestState["kind"];
type StateOf<S extends StateKind> = Extract<RequestState, { kind: S }>;
/** The event of a kind; those without more than their name share a type. */
type EventOf<E extends EventKind> = RequestEvent extends infer One
  ? One extends { kind: infer K }
    ? E extends K
      ? One
      : never
    : never
  : never;
/** What the events that have a meaning in a state do. */
export type Row<S extends StateKind> = { readonly [E in EventKind]?: (state: StateOf<S>, event: EventOf<E>) => Step };
