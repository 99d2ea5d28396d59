import type { EndpointRules } from "#core/endpoint/endpoint-rules.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Config } from "./schema.ts";

/** What the router does with endpoints beside breakers, as configured; undefined where that is nothing. */
export function endpointRules({ routing, health }: Pick<Config, "routing" | "health">): EndpointRules | undefined {
  const { ejection, slowStart } = routing;
  if (!ejection.enabled && slowStart.windowMillis === 0 && !health.check.enabled) return undefined;
  const { requestsMin, failureShare, slowFactor, floorShare } = ejection;
  const outliers = {
    intervalMicros: ejection.intervalMillis * MICROS_PER_MILLI,
    requestsMin,
    failureShare,
    slowFactor,
    ejectMicros: ejection.ejectMillis * MICROS_PER_MILLI,
    ejectMicrosMax: ejection.ejectMillisMax * MICROS_PER_MILLI,
  };
  const { windowMillis, shareMin } = slowStart;
  return {
    ...(ejection.enabled && { outliers }),
    ...(windowMillis > 0 && { slowStart: { windowMicros: windowMillis * MICROS_PER_MILLI, shareMin } }),
    floorShare,
  };
}
