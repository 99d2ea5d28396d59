import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";

/** Gives requests their place in the engines' queues. */
export interface PriorityPolicy {
  readonly name: string;
  /** vLLM's priority, an integer: lower runs earlier. */
  priorityOf(request: RouteRequest, at: Micros): number;
}
