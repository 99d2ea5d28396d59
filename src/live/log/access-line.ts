import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { RequestSummary } from "./request-summary.ts";

/** What a client names may be of any length; this much of it stands in a line. */
const NAME_CHARS_MAX = 256;

/** One request as a line of JSON, with its end. Holds no prompt, no answer, no key, no tenant. */
export function accessLine(summary: RequestSummary, time: Date = new Date()): string {
  const { requestId, method, route, model, status, outcome, endpoint, profile, reason, stream, attempts } = summary;
  const fields = {
    level: "info",
    time: time.toISOString(),
    event: "request",
    requestId,
    method,
    route,
    model: model.slice(0, NAME_CHARS_MAX),
    status,
    outcome,
    endpoint,
    prefillEndpoint: summary.prefillEndpoint,
    profile,
    reason,
    stream,
    retries: Math.max(0, attempts - 1),
    durationMillis: millis(summary.e2eMicros),
    ...(summary.queuedMicros > 0 && { queuedMillis: millis(summary.queuedMicros) }),
    ttftMillis: millis(summary.ttftMicros),
    promptTokens: summary.promptTokens,
    cachedTokens: summary.cachedTokens,
    outputTokens: summary.outputTokens,
    hitTokens: summary.hitTokens,
  };
  return `${JSON.stringify(fields)}\n`;
}

function millis(micros: Micros | undefined): number | undefined {
  return micros === undefined ? undefined : Math.round(micros) / MICROS_PER_MILLI;
}
