import { assert } from "#core/base/assert.ts";
import type { Simulation } from "./simulation.ts";

/** What must hold at the end of every run; the engines verify their blocks after every step. */
export function verifyEnd({ outcomes, open, router, clock, scaling, handoffs }: Simulation): void {
  scaling?.verify();
  handoffs.verify(open);
  let unended = 0;
  for (let row = 0; row < outcomes.length; row++) {
    if (outcomes.statusOf(row) === "open") unended++;
    if (!outcomes.isCompleted(row)) continue;
    const { arrivalAt, queueDelay, ttft, e2e, outputTokens } = outcomes;
    assert(queueDelay[row]! >= 0 && ttft[row]! > 0, "a request waits, is admitted, and then has its first token");
    assert(e2e[row]! >= ttft[row]!, "the last token does not come before the first");
    assert(arrivalAt[row]! <= clock, "nothing arrives after the end");
    assert(outputTokens[row]! > 0, "a request that was served has an answer");
  }
  assert(unended === open, "every request has exactly one end, or none yet");
  if (open > 0) return;
  assert(router.inFlight === 0, "the router has no request that is over");
  assert(router.openCharges === 0, "nothing is charged when nothing is in flight");
  assert(router.strayInputs === 0, "the router is notified of requests in flight only");
}
