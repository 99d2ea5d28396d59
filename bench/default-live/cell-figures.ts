import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import { timesMeet } from "#sim/result/slo.ts";
import type { Column } from "../default-choice/cell.ts";

/** A request that ended well, in microseconds of the engines' time. */
export interface Answered {
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  readonly outputTokens: number;
}

/** A request is good whose first token comes within a second and whose others 50 ms apart on average. */
const GOOD = { ttftMicros: MICROS_PER_SECOND, tpotMicros: 50 * MICROS_PER_MILLI };
const P99 = 0.99;

/** Of so many requests that were sent those that ended well; times in milliseconds, goodput as a share of all. */
export function cellFigures(answered: readonly Answered[], sent: number): Record<Column, number> {
  const [ttft, e2e] = [answered.map(({ ttftMicros }) => ttftMicros), answered.map(({ e2eMicros }) => e2eMicros)];
  const good = answered.filter(({ ttftMicros, e2eMicros, outputTokens }) => {
    const tpot = outputTokens > 1 ? (e2eMicros - ttftMicros) / (outputTokens - 1) : NaN;
    return timesMeet({ ttft: ttftMicros, tpot, e2e: e2eMicros }, GOOD);
  });
  return {
    e2eMean: meanOf(e2e) / MICROS_PER_MILLI,
    ttftMean: meanOf(ttft) / MICROS_PER_MILLI,
    e2eP99: p99Of(e2e) / MICROS_PER_MILLI,
    ttftP99: p99Of(ttft) / MICROS_PER_MILLI,
    goodput: good.length / sent,
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Between the two values that lie around it. */
function p99Of(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = P99 * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)] ?? NaN, sorted[Math.ceil(at)] ?? NaN];
  return low + (high - low) * (at - Math.floor(at));
}
