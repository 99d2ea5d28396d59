import type { Placed, Routed } from "../decision.ts";
import type { Fault } from "../endpoint/fault.ts";
import type { AttemptFailed, RequestAgain } from "../input.ts";
import type { Micros } from "../units.ts";
import type { RetryDenial, RetryPolicy } from "./retry-policy.ts";

/** What a host brings: the way into the router, the clock, and the budget that its requests share. */
export interface AttemptHost {
  readonly retries: RetryPolicy;
  now(): Micros;
  accept(input: AttemptFailed): void;
  accept(input: RequestAgain): Placed;
}

/** no-endpoint: none is left that may take the request. */
export type GiveUpReason = RetryDenial | "no-endpoint";

export type AfterFault =
  | { readonly kind: "retry"; readonly decision: Routed }
  | { readonly kind: "give-up"; readonly why: GiveUpReason };

/**
 * What becomes of a request whose attempt number `attempts` failed before its client had a byte: the router gets to know,
 * and it goes to another endpoint within the limits of the policy. A retry is paid for only where it is made.
 */
export function afterFault(host: AttemptHost, requestId: string, fault: Fault, attempts: number): AfterFault {
  host.accept({ kind: "attempt-failed", at: host.now(), requestId, fault });
  const why = host.retries.denial(fault, attempts);
  if (why !== undefined) return { kind: "give-up", why };
  const decision = host.accept({ kind: "request-retried", at: host.now(), requestId });
  if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
  host.retries.spend();
  return { kind: "retry", decision };
}
