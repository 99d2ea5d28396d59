import type { RequestContinued } from "../input.ts";
import type { AfterFault, AttemptHost } from "./after-fault.ts";

/** An answer that broke: what the router gets to know of it, and how often it went on elsewhere before. */
export interface BrokenAnswer extends Omit<RequestContinued, "kind" | "at"> {
  readonly continuations: number;
}

/**
 * What becomes of an answer that broke after its client had a part of it, and whose tokens are known: it goes on at
 * another endpoint within the limits of the policy. Where it does not, the router knows nothing of the break yet.
 */
export function afterBreak(host: AttemptHost, { continuations, ...broken }: BrokenAnswer): AfterFault {
  const why = host.retries.continuationDenial(broken.fault, continuations);
  if (why !== undefined) return { kind: "give-up", why };
  const decision = host.accept({ kind: "request-continued", at: host.now(), ...broken });
  if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
  host.retries.spend();
  return { kind: "retry", decision };
}
