import type { OrderState, RolloutOrder } from "./rollout-order.ts";
import type { DecisionDetail, DecisionLine, Overview, TrafficSlot } from "./overview.ts";

/** All that the page shows: the same state is the same page. */
export interface PageState {
  /** Undefined before the first answer. */
  readonly overview: Overview | undefined;
  /** Newest first, gathered from several answers. */
  readonly decisions: readonly DecisionLine[];
  /** Oldest first, likewise. */
  readonly slots: readonly TrafficSlot[];
  readonly connection: Connection;
  /** By the browser's clock. */
  readonly now: number;
  readonly filter: string;
  readonly sort: EndpointSort;
  readonly allEndpoints: boolean;
  readonly openEndpoints: ReadonlySet<string>;
  /** Decisions that are open, with what they were made of once it is there, or why it is not. */
  readonly openDecisions: ReadonlyMap<number, DecisionDetail | string>;
  readonly allDecisions: boolean;
  /** No new decisions are shown. */
  readonly held: boolean;
  /** Slot that a pointer or the arrow keys are at. */
  readonly cursor: number | undefined;
  /** What a person asked for last of a rollout. */
  readonly order: OrderState | undefined;
}

export type EndpointSort = "trouble" | "name" | "load" | "waiting" | "kv" | "hits";

export type Connection =
  | { readonly kind: "loading" }
  | { readonly kind: "live"; readonly at: number }
  /** The gateway wants a token. */
  | { readonly kind: "locked"; readonly message: string }
  /** It does not answer, or not as it should; `since` is the last good answer, undefined where there was none. */
  | { readonly kind: "lost"; readonly since: number | undefined; readonly message: string };

/** What a person can do. */
export interface PageActions {
  filter(text: string): void;
  sort(by: EndpointSort): void;
  showAllEndpoints(all: boolean): void;
  toggleEndpoint(id: string): void;
  toggleDecision(sequence: number): void;
  showAllDecisions(all: boolean): void;
  hold(held: boolean): void;
  moveCursor(slot: number | undefined): void;
  sendToken(token: string): void;
  order(order: RolloutOrder): void;
  sendAdminToken(token: string, order: RolloutOrder): void;
}

export const EMPTY_PAGE: PageState = {
  overview: undefined,
  decisions: [],
  slots: [],
  connection: { kind: "loading" },
  now: 0,
  filter: "",
  sort: "trouble",
  allEndpoints: false,
  openEndpoints: new Set(),
  openDecisions: new Map(),
  allDecisions: false,
  held: false,
  cursor: undefined,
  order: undefined,
};
