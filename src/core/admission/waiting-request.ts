import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { LimitReason } from "./admission.ts";

/** Why a request waits: its pool is full, there is no endpoint for it, or a limit delays it. */
export type WaitReason = "saturated" | "no-endpoint" | LimitReason;

/** A request in the queue. */
export interface WaitingRequest {
  readonly request: RouteRequest;
  /** Class, greater first. */
  readonly band: number;
  /** Counts entries; names the order in which they came. */
  readonly number: number;
  readonly since: Micros;
  readonly expiresAt: Micros;
  reason: WaitReason;
  /** It had to make room for another one. */
  evicted: boolean;
}
