import type { Forecast } from "../latency/forecast.ts";
import type { RouteRequest } from "../request/request.ts";
import { MICROS_PER_MILLI } from "../base/units.ts";

/** Targets as parameters of a plugin, for requests that have none of their own. */
export const TARGET_PARAMETERS = {
  ttftTargetMillis: {
    type: "number",
    default: 0,
    min: 0,
    meaning: "time to first token that a request without a target is promised; 0 for none",
  },
  tpotTargetMillis: {
    type: "number",
    default: 0,
    min: 0,
    meaning: "time per output token that a request without a target is promised; 0 for none",
  },
} as const;

export interface DefaultTargets {
  readonly ttftTargetMillis: number;
  readonly tpotTargetMillis: number;
}

/**
 * The larger of predicted over promised of TTFT and TPOT: at most 1 where both targets hold; undefined where nothing is
 * promised.
 */
export function targetUse(
  { slo }: RouteRequest,
  { ttftMicros, tpotMicros }: Forecast,
  { ttftTargetMillis, tpotTargetMillis }: DefaultTargets,
): number | undefined {
  const ttft = slo?.ttftMicros ?? ttftTargetMillis * MICROS_PER_MILLI;
  const tpot = slo?.tpotMicros ?? tpotTargetMillis * MICROS_PER_MILLI;
  if (ttft === 0 && tpot === 0) return undefined;
  return Math.max(ttft === 0 ? 0 : ttftMicros / ttft, tpot === 0 ? 0 : tpotMicros / tpot);
}
