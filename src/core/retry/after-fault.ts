import type { Placed, Routed } from "../decision.ts";
import type { PrefillFailed, TransferFailed } from "../disaggregation/prefill-input.ts";
import type { Fault } from "../endpoint/fault.ts";
import type { AttemptFailed, RequestAgain } from "../input.ts";
import type { Micros } from "../units.ts";
import type { RetryDenial, RetryPolicy } from "./retry-policy.ts";

/** An attempt failed before its client had a byte, at whichever endpoint. */
export type StageFailed = AttemptFailed | PrefillFailed | TransferFailed;

/**
 * What of an attempt failed: the endpoint that answers; the one that computes the prompt; or what went from one to the
 * other.
 */
export type FailedStage = "answer" | "prefill" | "transfer";

/** What a host brings: the way into the router, the clock, and the budget that its requests share. */
export interface AttemptHost {
  readonly retries: RetryPolicy;
  now(): Micros;
  accept(input: StageFailed): void;
  accept(input: RequestAgain): Placed;
}

/** no-endpoint: none is left that may take the request. */
export type GiveUpReason = RetryDenial | "no-endpoint";

export type AfterFault =
  | { readonly kind: "retry"; readonly decision: Routed }
  | { readonly kind: "give-up"; readonly why: GiveUpReason };

function stageFailed(stage: FailedStage, at: Micros, requestId: string, fault: Fault): StageFailed {
  if (stage === "transfer") return { kind: "transfer-failed", at, requestId };
  return { kind: stage === "answer" ? "attempt-failed" : "prefill-failed", at, requestId, fault };
}

/**
 * What becomes of a request whose attempt number `attempts` failed before its client had a byte: the router gets to know,
 * and it goes to another endpoint within the limits of the policy. A retry is paid for only where it is made.
 */
export function afterFault(
  host: AttemptHost,
  requestId: string,
  fault: Fault,
  attempts: number,
  stage: FailedStage = "answer",
): AfterFault {
  host.accept(stageFailed(stage, host.now(), requestId, fault));
  const why = host.retries.denial(fault, attempts);
  if (why !== undefined) return { kind: "give-up", why };
  const decision = host.accept({ kind: "request-retried", at: host.now(), requestId });
  if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
  host.retries.spend();
  return { kind: "retry", decision };
}
