import { assert } from "#core/assert.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { continuedEvent } from "../log/attempt-events.ts";
import { countUp } from "../metrics/gateway-counters.ts";
import type { Exchange } from "../request/exchange.ts";
import { REROUTED, type PathEvent } from "#core/path/path-event.ts";
import type { Forward } from "../upstream/forward.ts";
import { continuedBody } from "./continued-body.ts";
import { continuedText } from "./continued-text.ts";
import { settleSeam } from "./settle-seam.ts";

/**
 * Asks policy and router for an endpoint where a stream goes on that broke by `fault`, and prepares what is sent there.
 * Undefined where that endpoint is asked first at which token it goes on: the event follows then.
 */
export function askContinuation(exchange: Exchange, forward: Forward, fault: Fault): PathEvent | undefined {
  const { context, kept, model, routeId: requestId } = exchange;
  assert(kept !== undefined, "a stream that goes on was kept");
  if (kept.unfit !== undefined) return denied(exchange, "no-endpoint", kept.unfit);
  const { unsettled, continuations } = kept;
  const outputTokens = kept.seam.tokens + (unsettled?.length ?? 0);
  const answerHashes = kept.blocksOf(outputTokens);
  const byText = kept.text !== undefined && ({ byText: true } as const);
  const broken = { requestId, fault, outputTokens, ...(answerHashes && { answerHashes }), ...byText, continuations };
  const after = context.seat.afterBreak(broken);
  if (after.kind === "give-up") return denied(exchange, after.why);
  const { decision } = after;
  context.observe.fault?.(continuedEvent(forward, fault, decision.endpoint, outputTokens, kept.text !== undefined));
  if (kept.text !== undefined) countUp(context.counters.continuationsByText, fault);
  forward.continueAt(decision);
  const entry = unsettled && context.directory.get(decision.endpoint);
  if (entry === undefined) return goesOn(exchange, forward);
  settleSeam(entry, model, kept)
    .then((isSettled) => {
      // The client may have left.
      if (exchange.state.kind !== "severed") return;
      exchange.dispatch(isSettled ? goesOn(exchange, forward) : denied(exchange, "no-endpoint", "seam"));
    })
    .catch((error: unknown) => exchange.bug(error));
  return undefined;
}

function denied({ context }: Exchange, why: Extract<PathEvent, { kind: "denied" }>["why"], counted: string = why) {
  countUp(context.counters.continuationsDenied, counted);
  return { kind: "denied", why } as const;
}

function goesOn({ context, kept, path, prompt }: Exchange, forward: Forward): typeof REROUTED {
  assert(kept !== undefined, "a stream that goes on was kept");
  const { seam } = kept;
  const sent =
    kept.text === undefined
      ? { path: COMPLETIONS, body: continuedBody(kept, seam) }
      : { path, body: continuedText(kept, kept.text, forward.firstBody) };
  kept.resume();
  context.counters.continuationTokens += (kept.promptTokens || prompt.promptTokens) + seam.tokens;
  forward.content = sent;
  return REROUTED;
}

const COMPLETIONS = "/v1/completions";
