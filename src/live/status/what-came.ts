import type { Decision } from "#core/input/decision.ts";
import { seenTpotMicros, tokensOfEach } from "#core/latency/latency-model.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";

/** What became of a decision: from the decision on, as far as it is known yet. */
export interface Came {
  firstTokenMicros?: Micros;
  endMicros?: Micros;
  /** Beyond a request's own: the attempt failed and another decision followed, or who carries it took it elsewhere. */
  outcome?: Outcome | "attempt-failed" | "moved";
  outputTokens?: number;
  /** Answers that have them together, where there are several. */
  sequences?: number;
  cachedTokens?: number;
}

/** A decision beside what came of it. */
export interface Followed {
  readonly decision: Decision;
  readonly came: Came;
}

/** Whether nothing more will be known of it. */
export function isOver({ decision, came }: Followed): boolean {
  return decision.kind !== "routed" || came.outcome !== undefined;
}

/**
 * What came, in one sentence, each time beside the one that was expected; "" as long as nothing is known. For example:
 *
 *     first token after 52 ms (expected 45), then 180 tokens at 9.8 ms each (expected 9.1), whole after 1.81 s (expected
 *     1.67); 640 tokens were cached (expected 672)
 */
export function cameText({ decision, came }: Followed): string {
  if (decision.kind !== "routed") return "";
  const { forecast, heldTokens = decision.hitTokens } = decision;
  const { firstTokenMicros: first, endMicros: end, outcome, outputTokens: tokens, sequences = 1, cachedTokens } = came;
  if (first === undefined && outcome === undefined) return "";
  let text = first === undefined ? "" : `first token after ${besides(first, forecast?.ttftMicros)}`;
  if (outcome === undefined || end === undefined) return text;
  if (outcome === "ok") {
    const pace = paceOf(came);
    const side = sequences > 1 ? ` of ${sequences} answers side by side` : "";
    if (pace !== undefined) text += `, then ${tokens} tokens${side} at ${besides(pace, forecast?.tpotMicros)} each, `;
    else if (text !== "") text += ", ";
    // Of an answer that is no stream nobody sees the first token.
    const whole =
      forecast === undefined || tokens === undefined ? undefined : wholeOf(forecast, tokensOfEach(tokens, sequences));
    text += `whole after ${besides(end, whole)}`;
  } else text += `${text === "" ? "no token" : ""}, ${ENDED[outcome]} after ${besides(end)}`;
  if (cachedTokens === undefined) return text;
  return `${text}; ${cachedTokens} tokens were cached (expected ${Math.round(heldTokens)})`;
}

const ENDED: Readonly<Record<Exclude<NonNullable<Came["outcome"]>, "ok">, string>> = {
  failed: "broken off",
  aborted: "left by its client",
  timeout: "given up for its time limit",
  refused: "refused by the engine",
  "attempt-failed": "failed there",
  moved: "taken elsewhere",
};

/** Mean time of a token after the first; undefined where there was none, or nobody counted. */
export function paceOf({ firstTokenMicros, endMicros, outputTokens, sequences = 1 }: Came): Micros | undefined {
  return endMicros === undefined ? undefined : seenTpotMicros(firstTokenMicros, endMicros, outputTokens, sequences);
}

/** What the whole answer was expected to take, had its length been known. */
function wholeOf(
  { ttftMicros, tpotMicros }: { readonly ttftMicros: Micros; readonly tpotMicros: Micros },
  outputTokens: number,
): Micros {
  return ttftMicros + tpotMicros * Math.max(0, outputTokens - 1);
}

function besides(micros: Micros, expected?: Micros): string {
  return expected === undefined ? timeText(micros) : `${timeText(micros)} (expected ${timeText(expected)})`;
}

function timeText(micros: Micros): string {
  if (micros >= MICROS_PER_SECOND) return `${(micros / MICROS_PER_SECOND).toFixed(2)} s`;
  const millis = micros / MICROS_PER_MILLI;
  return `${millis < 10 ? millis.toFixed(1) : millis.toFixed(0)} ms`;
}
