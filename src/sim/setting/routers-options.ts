import type { Micros } from "#core/base/units.ts";

/** Several routers in front of one fleet. */
export interface RoutersOptions {
  /** At least 1. */
  readonly count: number;
  /** From what one does until the others know; undefined where they never do. */
  readonly shareLagMicros: Micros | undefined;
  /** Which router a request comes to: each in turn, or always the same one for a conversation, as over one connection. */
  readonly spread: RouterSpread;
}

export const ROUTER_SPREADS = ["round-robin", "session"] as const;
export type RouterSpread = (typeof ROUTER_SPREADS)[number];
