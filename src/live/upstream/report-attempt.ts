import { nowMicros } from "../base/clock.ts";
import { cutEvent, givenUpEvent } from "../log/attempt-events.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import type { ReportEffect } from "#core/path/path-effect.ts";
import type { Forward } from "./forward.ts";

/** Informs router, metrics and log of what became of an attempt. */
export function reportAttempt(
  { shared, deadlineAt, status }: ForwardedRequest,
  forward: Forward,
  effect: ReportEffect,
): void {
  const { counters, observe } = shared;
  switch (effect.kind) {
    case "report-first-token":
      forward.tokens.first(nowMicros());
      break;
    case "report-timeout":
      counters.timeouts++;
      if (nowMicros() > deadlineAt) countUp(counters.deadlines, "sent");
      break;
    case "report-retried":
      counters.retries++;
      observe.retried(effect.fault);
      break;
    case "report-given-up":
      if (effect.why === "budget") counters.retriesDenied++;
      observe.fault?.(givenUpEvent(forward, effect.fault, effect.why, status));
      break;
    case "report-continued":
      countUp(counters.continuations, effect.fault);
      break;
    case "report-cut":
      counters.cuts++;
      observe.fault?.(cutEvent(forward, effect.fault, forward.tokensSeen));
      break;
  }
}
