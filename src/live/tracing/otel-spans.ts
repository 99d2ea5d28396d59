import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { parseTraceParent, TRACE_PARENT_HEADER } from "@opentelemetry/core";
import type { Placed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { nowMicros, WALL_START_MICROS } from "../base/clock.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { RequestSummary } from "../log/request-summary.ts";
import type { OpenedRequest, RequestSpans } from "./request-spans.ts";

/** A sampled request: its own span, and those under way below it. */
interface Traced {
  readonly span: Span;
  readonly context: Context;
  decidingAt: Micros;
  attempts: number;
  attempt: Span | undefined;
}

/**
 * Spans of a request by OpenTelemetry's tracer: `gateway` (server) from its head to its end, below it a `decision` for
 * each, and an `attempt` (client) for each endpoint that it was sent to, whose context the endpoint gets. A client's own
 * traceparent is the parent, and whether that was sampled decides; of others the sampler. What they hold is what metrics
 * and logs hold: no prompt, no answer, no key.
 */
export class OtelSpans implements RequestSpans {
  readonly #tracer: Tracer;
  readonly #traced = new Map<string, Traced>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  /** Sampled requests under way. */
  get size(): number {
    return this.#traced.size;
  }

  opened({ routeId, route, headers, openedAt }: OpenedRequest): void {
    const given = headers.get("traceparent");
    const remote = given === "" ? null : parseTraceParent(given);
    const parent = remote === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true });
    const attributes = { "http.request.method": "POST", "http.route": route.pattern };
    const start = { kind: SpanKind.SERVER, startTime: wallTime(openedAt), attributes };
    const span = this.#tracer.startSpan(`POST ${route.pattern}`, start, parent);
    if (!span.isRecording()) return;
    const context = trace.setSpan(parent, span);
    this.#traced.set(routeId, { span, context, decidingAt: openedAt, attempts: 0, attempt: undefined });
  }

  sends(routeId: string, endpoint: EndpointId, headers: string[]): void {
    const traced = this.#traced.get(routeId);
    if (traced === undefined) return;
    traced.attempt?.end();
    const attributes = { "gnomon.endpoint": endpoint, "gnomon.attempt": ++traced.attempts };
    traced.attempt = this.#tracer.startSpan("attempt", { kind: SpanKind.CLIENT, attributes }, traced.context);
    const { traceId, spanId, traceFlags } = traced.attempt.spanContext();
    const value = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
    const at = headers.findIndex((name, i) => i % 2 === 0 && name === TRACE_PARENT_HEADER);
    if (at < 0) headers.push(TRACE_PARENT_HEADER, value);
    else headers[at + 1] = value;
  }

  deciding(requestId: string): void {
    const traced = this.#traced.get(requestId);
    if (traced !== undefined) traced.decidingAt = nowMicros();
  }

  decided(requestId: string, decision: Placed, queuedMicros: Micros): void {
    const traced = this.#traced.get(requestId);
    if (traced === undefined) return;
    const startTime = wallTime(traced.decidingAt);
    const span = this.#tracer.startSpan(
      "decision",
      { startTime, attributes: decisionFacts(decision, queuedMicros) },
      traced.context,
    );
    span.end();
  }

  firstToken(requestId: string): void {
    this.#traced.get(requestId)?.attempt?.addEvent("first token");
  }

  attemptFailed(requestId: string, fault: Fault): void {
    const traced = this.#traced.get(requestId);
    if (traced?.attempt === undefined) return;
    traced.attempt.setAttribute("error.type", fault);
    traced.attempt.setStatus({ code: SpanStatusCode.ERROR });
    traced.attempt.end();
    traced.attempt = undefined;
  }

  observing(observe: RequestObserver): RequestObserver {
    return {
      ...observe,
      finished: (summary) => {
        this.#finished(summary);
        observe.finished(summary);
      },
    };
  }

  #finished(summary: RequestSummary): void {
    const { routeId = "" } = summary;
    const traced = this.#traced.get(routeId);
    if (traced === undefined) return;
    this.#traced.delete(routeId);
    const failed = summary.outcome === "failed" || summary.outcome === "timeout" || summary.status >= 500;
    if (failed) {
      traced.attempt?.setStatus({ code: SpanStatusCode.ERROR });
      traced.span.setStatus({ code: SpanStatusCode.ERROR });
    }
    traced.attempt?.end();
    traced.span.setAttributes(requestFacts(summary));
    traced.span.end();
  }
}

function decisionFacts(decision: Placed, queuedMicros: Micros): Attributes {
  const { profile, policyVersion, reason, attempt } = decision;
  const facts = { "gnomon.profile": profile, "gnomon.policy_version": policyVersion, "gnomon.reason": reason };
  const common = { ...facts, "gnomon.attempt": attempt, "gnomon.queued_ms": queuedMicros / MICROS_PER_MILLI };
  if (decision.kind === "rejected") return common;
  return { ...common, "gnomon.endpoint": decision.endpoint, "gnomon.hit_tokens": decision.hitTokens };
}

/** What is not known is left out. */
function requestFacts(summary: RequestSummary): Attributes {
  const { ttftMicros, promptTokens, cachedTokens, outputTokens, model, endpoint } = summary;
  return {
    "http.response.status_code": summary.status,
    "gnomon.outcome": summary.outcome,
    "gnomon.reason": summary.reason,
    "gnomon.attempts": summary.attempts,
    "gnomon.queued_ms": summary.queuedMicros / MICROS_PER_MILLI,
    ...(model !== "" && { "gen_ai.request.model": model }),
    ...(endpoint !== "" && { "gnomon.endpoint": endpoint }),
    ...(ttftMicros !== undefined && { "gnomon.ttft_ms": ttftMicros / MICROS_PER_MILLI }),
    ...(promptTokens !== undefined && { "gen_ai.usage.input_tokens": promptTokens }),
    ...(cachedTokens !== undefined && { "gnomon.cached_tokens": cachedTokens }),
    ...(outputTokens !== undefined && { "gen_ai.usage.output_tokens": outputTokens }),
  };
}

/** Seconds and nanoseconds since 1970. */
function wallTime(at: Micros): [number, number] {
  const micros = WALL_START_MICROS + Math.round(at);
  const seconds = Math.floor(micros / MICROS_PER_SECOND);
  return [seconds, (micros - seconds * MICROS_PER_SECOND) * 1_000];
}
