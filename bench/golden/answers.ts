import type { GoldenCase } from "./golden-case.ts";
import type { GoldenRun } from "./run-case.ts";

/** By row of the outcomes; 0 and empty for a request without a whole answer. */
export interface Answers {
  readonly e2e: readonly number[];
  /** Between tokens. */
  readonly gaps: readonly (readonly number[])[];
}

/**
 * Answers as BLIS reckons them: the gap before a token is the time of the step that made it, so a step that passed over
 * a running request (no token budget left, or no blocks) is in nobody's gaps, and the end-to-end time is the sum of the
 * first token's and the gaps.
 */
export function peerAnswers(golden: GoldenCase, { simulation, steps }: GoldenRun): Answers {
  const { outcomes, observer } = simulation;
  const { perOutputTokenMicros, afterLastTokenMicros } = golden;
  const startOf = steps.map(({ startAt, endAt }) => new Map(endAt.map((at, i) => [at, startAt[i]!])));
  const e2e = outcomes.ids.map(() => 0);
  const gaps = outcomes.ids.map((): number[] => []);
  for (let i = 0; i < observer.gaps.length; i++) gaps[observer.gapRows.at(i)]!.push(observer.gaps.at(i));
  outcomes.ids.forEach((id, row) => {
    if (!outcomes.isCompleted(row)) return;
    let at = outcomes.arrivalAt[row]! + outcomes.ttft[row]! - perOutputTokenMicros;
    const starts = startOf[outcomes.endpoint[row]!]!;
    gaps[row] = gaps[row]!.map((gap) => {
      at += gap - perOutputTokenMicros;
      return at - (starts.get(at) ?? NaN) + perOutputTokenMicros;
    });
    e2e[row] =
      outcomes.ttft[row]! +
      gaps[row].reduce((sum, gap) => sum + gap, 0) +
      (outputTokensOf(golden, id) > 0 ? afterLastTokenMicros : 0);
  });
  return { e2e, gaps };
}

/** Tokens that the request of that id asks for. */
export function outputTokensOf({ requests }: GoldenCase, id: string): number {
  return requests[Number(id.slice("request_".length))]!.outputTokens;
}
