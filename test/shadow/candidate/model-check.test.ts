import assert from "node:assert/strict";
import { test } from "node:test";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { modelCheck } from "#shadow/candidate/model-check.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const workload = caseWorkload();
const base = runCandidate(caseSetting(workload), namedProfile("gnomon"));

/** What really happened: the simulation itself, but for what `changed` says. */
function seen(changed: (i: number) => Partial<Observed>): Observed[] {
  return workload.map(({ outputTokens }, i) => ({
    endpoint: "a",
    ok: true,
    ttftMicros: base.ttftMicros[i]!,
    e2eMicros: base.e2eMicros[i]!,
    outputTokens,
    cachedTokens: NaN,
    attempts: 1,
    retriedMicros: 0,
    ...changed(i),
  }));
}

test("requests that were retried, given up or early are not compared, and counted by reason", () => {
  const { error, uncompared } = modelCheck(
    base,
    seen((i) => {
      if (i < 5) return { ok: false, uncompared: "early" };
      if (i < 12) return { attempts: 2, retriedMicros: 9e6, ttftMicros: 9e6 + base.ttftMicros[i]!, e2eMicros: 1e7 };
      if (i < 15) return { ok: false };
      return {};
    }),
  );
  assert.deepEqual(Object.values(uncompared), [5, 7, 3]);
  assert.deepEqual(Object.keys(uncompared)[0], "early");
  for (const one of Object.values(error)) assert.equal(one?.meanRelative, 0);
  assert.equal(error.e2eMicros?.pairs, workload.length - 15);
});

test("compared and not compared are all requests, whatever the simulation made of them", () => {
  const lost = { ...base, e2eMicros: base.e2eMicros.map((value, i) => (i % 10 === 0 ? NaN : value)) };
  const { error, uncompared } = modelCheck(
    lost,
    seen((i) => (i % 7 === 0 ? { attempts: 3 } : {})),
  );
  const left = Object.values(uncompared).reduce((sum, count) => sum + count, 0);
  assert.equal(left + error.e2eMicros!.pairs, workload.length);
});
