import type { Outcome } from "../endpoint/outcome.ts";
import type { Micros } from "../base/units.ts";
import { tokensOfEach } from "../latency/latency-model.ts";

/** What a request is promised; a target that is left out always holds. */
export interface Slo {
  /** From its arrival to the first token, above 0. */
  readonly ttftMicros?: Micros;
  /** Mean time of a token after the first, above 0. */
  readonly tpotMicros?: Micros;
}

/** Of the targets that there are; undefined where there is none. */
export function sloWith(ttftMicros: Micros | undefined, tpotMicros: Micros | undefined): Slo | undefined {
  if (ttftMicros === undefined && tpotMicros === undefined) return undefined;
  return { ...(ttftMicros !== undefined && { ttftMicros }), ...(tpotMicros !== undefined && { tpotMicros }) };
}

/** `unseen`: nobody saw its first token, as of an answer that does not stream, or counted its tokens. */
export type SloResult = "met" | "missed" | "unseen";

/** How a request ended, in microseconds of one clock. */
export interface PromisedEnd {
  readonly outcome: Outcome;
  readonly arrivedAt: Micros;
  readonly firstTokenAt: Micros | undefined;
  readonly endedAt: Micros;
  /** Undefined where nobody counted them. */
  readonly outputTokens: number | undefined;
  /** Answers that have them together. */
  readonly sequences: number;
}

export interface SloResults {
  /** Absent where there is no such target. */
  readonly ttft?: SloResult;
  readonly tpot?: SloResult;
  /** Both together. */
  readonly all: SloResult;
}

/**
 * Whether a request got what it is promised. One that was refused or failed got nothing; of one whose client left nobody
 * knows, which is undefined.
 */
export function sloResults(slo: Slo, end: PromisedEnd): SloResults | undefined {
  const { ttftMicros, tpotMicros } = slo;
  if (end.outcome === "aborted") return undefined;
  const ttft = ttftMicros === undefined ? undefined : ttftResult(ttftMicros, end);
  const tpot = tpotMicros === undefined ? undefined : tpotResult(tpotMicros, end);
  const has = (result: SloResult) => ttft === result || tpot === result;
  const all = has("missed") ? "missed" : has("unseen") ? "unseen" : "met";
  return { ...(ttft && { ttft }), ...(tpot && { tpot }), all };
}

function ttftResult(targetMicros: Micros, { outcome, arrivedAt, firstTokenAt }: PromisedEnd): SloResult {
  if (outcome !== "ok") return "missed";
  if (firstTokenAt === undefined) return "unseen";
  return firstTokenAt - arrivedAt <= targetMicros ? "met" : "missed";
}

function tpotResult(targetMicros: Micros, end: PromisedEnd): SloResult {
  const { outcome, firstTokenAt, endedAt, outputTokens, sequences } = end;
  if (outcome !== "ok") return "missed";
  if (outputTokens === undefined) return "unseen";
  const tokens = tokensOfEach(outputTokens, sequences);
  // It has no token after the first.
  if (tokens < 2) return "met";
  if (firstTokenAt === undefined) return "unseen";
  return (endedAt - firstTokenAt) / (tokens - 1) <= targetMicros ? "met" : "missed";
}
