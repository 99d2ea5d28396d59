import { MICROS_PER_SECOND, MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { WorkloadRequest } from "../workload-request.ts";

const MICROS_DIGITS = 6;

/** A request as a row of Azure's CSV, on a clock that starts at `startWallMicros`, or the reason why it has none. */
export function azureLine(request: WorkloadRequest, startWallMicros: number): string | { readonly refused: string } {
  if (request.thinkMicros !== undefined && request.arrivalMicros === 0)
    return { refused: "follow-up turn without an arrival time" };
  const micros = startWallMicros + request.arrivalMicros;
  const second = new Date(Math.floor(micros / MICROS_PER_SECOND) * MILLIS_PER_SECOND)
    .toISOString()
    .slice(0, 19)
    .replace("T", " ");
  const fraction = String(Math.floor(micros % MICROS_PER_SECOND)).padStart(MICROS_DIGITS, "0");
  return `${second}.${fraction}0,${request.promptTokens},${request.outputTokens}\n`;
}
