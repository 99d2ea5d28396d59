import { assert } from "#core/base/assert.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { continuedEvent } from "../log/attempt-events.ts";
import { countUp } from "../metrics/gateway-counters.ts";
import type { Exchange } from "../request/exchange.ts";
import { REROUTED, type PathEvent } from "#core/path/path-event.ts";
import type { Forward } from "../upstream/forward.ts";
import { continuedBody } from "./continued-body.ts";
import { continuedText } from "./continued-text.ts";
import { withFields } from "../request/request-body.ts";
import type { RepeatableStream } from "./repeatable-stream.ts";
import { settleSeam } from "./settle-seam.ts";

/**
 * Asks policy and router for an endpoint where a stream goes on that broke by `fault`, and prepares what is sent there.
 * Undefined where that endpoint is asked first at which token it goes on: the event follows then.
 */
export function askContinuation(exchange: Exchange, forward: Forward, fault: Fault): PathEvent | undefined {
  const { context, kept, model, repeatable, routeId: requestId } = exchange;
  if (repeatable !== undefined) return askRepeat(exchange, repeatable, forward, fault);
  assert(kept !== undefined, "a stream that goes on was kept");
  if (kept.unfit !== undefined) return denied(exchange, "no-endpoint", kept.unfit);
  const { unsettled, continuations } = kept;
  const outputTokens = kept.seam.tokens + (unsettled?.length ?? 0);
  const answerHashes = kept.blocksOf(outputTokens);
  const byText = kept.text !== undefined && ({ byText: true } as const);
  const broken = { requestId, fault, outputTokens, ...(answerHashes && { answerHashes }), ...byText, continuations };
  const after = context.router.afterBreak(broken);
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

/** The other endpoint makes the answer from its beginning: for the router it has the request as it came. */
function askRepeat(exchange: Exchange, stream: RepeatableStream, forward: Forward, fault: Fault): PathEvent {
  const { context, path, prompt, routeId: requestId } = exchange;
  if (stream.unfit !== undefined) return denied(exchange, "no-endpoint", stream.unfit);
  const after = context.router.afterBreak({ requestId, fault, outputTokens: 0, continuations: stream.continuations });
  if (after.kind === "give-up") return denied(exchange, after.why);
  const { decision } = after;
  context.observe.fault?.(continuedEvent(forward, fault, decision.endpoint, 0, false));
  forward.continueAt(decision);
  stream.continuations++;
  context.counters.continuationTokens += prompt.promptTokens;
  forward.content = { path, body: repeatedBody(stream, forward.firstBody) };
  return REROUTED;
}

/** The request as it came. vLLM stores a response under the id that its request brings. */
function repeatedBody({ dialect, first }: RepeatableStream, body: Buffer): Buffer {
  const id = first?.["id"];
  return dialect === "responses" && typeof id === "string" ? withFields(body, { request_id: id }) : body;
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
