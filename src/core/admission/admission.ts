import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { LimitUse } from "./limit-use.ts";
import type { LimitWindow } from "./limit-window.ts";

/** Why a policy holds a request back. */
export type LimitReason = "bucket-empty" | "rate-limit" | "tenant-quota" | "usage-quota" | "hard-cap";

/**
 * What becomes of a request at the door. A delayed one is asked about again after `micros`, at least 1; of a rejected one
 * they are the time after which asking again may help, where that is known.
 */
export type Admission =
  | { readonly action: "admit" }
  | { readonly action: "reject"; readonly reason: string; readonly micros?: Micros }
  | { readonly action: "delay"; readonly reason: string; readonly micros: Micros };

/** What a request had used by its end. */
export interface UsedTokens {
  readonly promptTokens: number;
  /** Undefined where nobody knows. */
  readonly outputTokens: number | undefined;
}

/**
 * Decides whether a request may be routed at all. It knows the request and what it admitted itself; no endpoint. Times do
 * not run backwards.
 */
export interface AdmissionPolicy {
  readonly name: string;
  /** It counts what is in flight, so that one that is new has to be given what is under way already. */
  readonly holds: boolean;
  /** It goes on from what another one counted, in whose place it is. */
  readonly continues: boolean;
  /** Changes nothing that a later answer could depend on: hosts may ask as often as they like. */
  check(request: RouteRequest, at: Micros): Admission;
  /** It goes on, having been asked about at the same time; so many like it, where another router let them in. */
  admitted(request: RouteRequest, at: Micros, requests?: number): void;
  /** An admitted request is over, once and on every path. */
  ended(request: RouteRequest, at: Micros, used: UsedTokens): void;
  /** Who has taken what of it, in any order; to be shown. Changes nothing. */
  uses(at: Micros): LimitUse[];
  /** What was used in a window outlasts its requests; absent of a limit that counts what is in flight. */
  readonly windows?: UsedWindows;
}

export interface UsedWindows {
  /** Limits whose windows can stand for each other have the same one. */
  readonly measure: string;
  subjectOf(request: RouteRequest): string;
  /** Those of which anything is used, that used last first. Changes nothing. */
  list(at: Micros): LimitWindow[];
  /** From now on at least that much is used there. */
  raise(at: Micros, window: LimitWindow): void;
}

export const ADMIT: Admission = { action: "admit" };

/** What is done with a request above a limit: refused at once, or it waits. */
export type OnLimit = "reject" | "delay";

/** The verdict on a request above a limit, with the time until it would be below: at least 1 us, rounded up. */
export function above(onLimit: OnLimit, reason: LimitReason, micros: Micros): Admission {
  return { action: onLimit, reason, micros: Math.max(1, Math.ceil(micros)) };
}
