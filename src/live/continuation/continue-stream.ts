import type { Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { afterBreak } from "#core/retry/after-break.ts";
import { countUp } from "../metrics/gateway-counters.ts";
import { continuedEvent } from "../log/attempt-events.ts";
import type { Exchange } from "../request/exchange.ts";
import { type Denied, REROUTED } from "../request-state/request-event.ts";
import type { Forward } from "../upstream/forward.ts";
import { continuedBody } from "./continued-body.ts";

/** Where the rest of a stream comes from, and what is sent there. */
export interface Continuation {
  readonly event: typeof REROUTED;
  readonly routed: Routed;
  readonly path: string;
  readonly body: Buffer;
}

/** Asks policy and router for an endpoint where a stream goes on that broke by `fault`. */
export function continueStream(exchange: Exchange, forward: Forward, fault: Fault): Continuation | Denied {
  const { context, kept, routeId: requestId } = exchange;
  if (kept === undefined) return { kind: "denied", why: "no-endpoint" };
  const { tokens: outputTokens } = kept.seam;
  const answerHashes = kept.blocksOf(outputTokens);
  const { continuations } = kept;
  const broken = { requestId, fault, outputTokens, ...(answerHashes && { answerHashes }), continuations };
  const after = afterBreak(context.attempts, broken);
  if (after.kind === "give-up") {
    countUp(context.counters.continuationsDenied, after.why);
    return { kind: "denied", why: after.why };
  }
  const body = continuedBody(kept, kept.seam);
  kept.resume();
  context.counters.continuationTokens += kept.promptTokens + outputTokens;
  context.observe.fault?.(continuedEvent(forward, fault, after.decision.endpoint, outputTokens));
  return { event: REROUTED, routed: after.decision, path: COMPLETIONS, body };
}

const COMPLETIONS = "/v1/completions";
