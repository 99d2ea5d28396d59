import type { Placed } from "../decision.ts";
import type { RequestHedged } from "../hedge-input.ts";
import type { Micros } from "../units.ts";
import type { AfterFault } from "./after-fault.ts";
import type { HedgeBudget } from "./hedge-budget.ts";

/**
 * How it ended that two endpoints had a request. won, lost: the second one's answer began first, or the first one's.
 * failed: the second one failed. took-over: the first one failed. dropped: the request was over before either.
 */
export type HedgeEnd = "won" | "lost" | "failed" | "took-over" | "dropped";

/** What a host brings. */
export interface HedgeHost {
  readonly hedges: HedgeBudget;
  now(): Micros;
  /** Whether another endpoint that is well may take the request. */
  hasTaker(requestId: string): boolean;
  accept(input: RequestHedged): Placed;
}

/**
 * Whether a request whose first token is late goes to a second endpoint as well, and to which: within the budget, which
 * only those spend that go, and where the policy finds one. No request is asked about twice.
 */
export function askHedge(host: HedgeHost, requestId: string): AfterFault {
  if (!host.hedges.allows) return { kind: "give-up", why: "budget" };
  if (!host.hasTaker(requestId)) return { kind: "give-up", why: "no-endpoint" };
  const decision = host.accept({ kind: "request-hedged", at: host.now(), requestId });
  if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
  host.hedges.spend();
  return { kind: "retry", decision };
}
