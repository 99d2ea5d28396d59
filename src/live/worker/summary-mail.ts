import type { Outcome } from "#core/endpoint/outcome.ts";
import type { RequestSummary } from "../request/request-summary.ts";
import type { MessageReader } from "./message-reader.ts";
import type { MessageWriter } from "./message-writer.ts";

export function writeSummary(to: MessageWriter, summary: RequestSummary): void {
  to.text(summary.requestId);
  to.name(summary.method);
  to.name(summary.route);
  to.name(summary.model);
  to.text(summary.tenant);
  to.name(summary.endpoint);
  to.name(summary.prefillEndpoint ?? "");
  to.name(summary.profile);
  to.name(summary.reason);
  to.name(summary.outcome);
  to.byte(summary.stream ? 1 : 0);
  to.number(summary.status);
  to.number(summary.attempts);
  to.optional(summary.ttftMicros);
  to.optional(summary.tpotMicros);
  to.number(summary.queuedMicros);
  to.number(summary.e2eMicros);
  to.optional(summary.promptTokens);
  to.optional(summary.cachedTokens);
  to.optional(summary.outputTokens);
  to.number(summary.hitTokens);
}

export function readSummary(from: MessageReader): RequestSummary {
  const head = {
    requestId: from.text(),
    method: from.name(),
    route: from.name(),
    model: from.name(),
    tenant: from.text(),
    endpoint: from.name(),
  };
  const prefillEndpoint = from.name();
  return {
    ...head,
    ...(prefillEndpoint !== "" && { prefillEndpoint }),
    profile: from.name(),
    reason: from.name(),
    // Written from a summary of this program.
    outcome: from.name() as Outcome,
    stream: from.byte() === 1,
    status: from.number(),
    attempts: from.number(),
    ttftMicros: from.optional(),
    tpotMicros: from.optional(),
    queuedMicros: from.number(),
    e2eMicros: from.number(),
    promptTokens: from.optional(),
    cachedTokens: from.optional(),
    outputTokens: from.optional(),
    hitTokens: from.number(),
  };
}
