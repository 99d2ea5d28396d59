import type { RouteRequest } from "../request.ts";
import type { Micros } from "../units.ts";

/** What becomes of a request at the door. A delayed one is asked about again after the delay. */
export type Admission =
  | { readonly action: "admit" }
  | { readonly action: "reject"; readonly reason: string }
  | { readonly action: "delay"; readonly micros: Micros; readonly reason: string };

/** Decides whether a request may be routed at all. Knows the request and what it admitted itself; no endpoint. */
export interface AdmissionPolicy {
  readonly name: string;
  /** Times do not run backwards. An admitted request is counted until `ended`. */
  decide(request: RouteRequest, at: Micros): Admission;
  /** An admitted request is over, once and on every path. */
  ended(request: RouteRequest, at: Micros): void;
}

export const ADMIT: Admission = { action: "admit" };
