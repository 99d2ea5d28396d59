import assert from "node:assert/strict";
import type { Routed } from "#core/input/decision.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { request, snapshot } from "../state.ts";

/** Step times that are known of endpoints. */
export type Known = Readonly<Record<string, StepTimes>>;

/** A profile of one scorer. */
export interface OneScorer {
  readonly plugin: string;
  readonly parameters: Readonly<Record<string, number>>;
}

/** An engine on which 2,000 tokens take 100 ms and a step 10 ms, or a multiple of that. */
export function stepTimesOf(times: number): StepTimes {
  return {
    stepMicros: 10_000 * times,
    prefillTokenMicros: 45 * times,
    sequenceMicros: 0,
    contextTokenMicros: 0,
    stepTokensMax: 8_192,
  };
}

/** Endpoints that take so many times as long as the first, one request after the other, each of so many answers of 20 tokens. */
export function routedBy(
  scorer: OneScorer,
  slowness: Readonly<Record<string, number>>,
  requests: number,
  known: Known = {},
  sequences = 1,
): Routed[] {
  const profile = { filters: [], scorers: [{ ...scorer, weight: 1 }], picker: { plugin: "max-score", parameters: {} } };
  const router = new Router({
    profiles: { p: profile },
    defaultProfile: "p",
    seed: 1,
    blockTokens: 16,
    staleAfterMicros: 5_000_000,
    index: new ApproximateIndex(),
  });
  for (const id of Object.keys(slowness)) {
    const endpoint = { ...snapshot({ id }).endpoint, ...(known[id] && { stepTimes: known[id] }) };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  const decisions: Routed[] = [];
  for (let i = 0, at = 1_000; i < requests; i++, at += 1_000 * MICROS_PER_MILLI) {
    const id = `r${i}`;
    const decision = router.accept({
      kind: "request-arrived",
      at,
      request: request({ id, promptTokens: 2_000, sequences }),
    });
    assert.ok(decision?.kind === "routed");
    decisions.push(decision);
    const times = slowness[decision.endpoint]!;
    const firstAt = at + 100 * times * MICROS_PER_MILLI;
    router.accept({ kind: "first-token", at: firstAt, requestId: id });
    const usage = { promptTokens: 2_000, cachedTokens: 0, outputTokens: 20 * sequences };
    const endAt = firstAt + 19 * 10 * times * MICROS_PER_MILLI;
    router.accept({ kind: "request-finished", at: endAt, requestId: id, outcome: "ok", ...usage });
  }
  return decisions;
}
