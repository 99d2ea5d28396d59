import assert from "node:assert/strict";
import { test } from "node:test";
import { sessionLosses } from "#shadow/candidate/sessions.ts";
import { objectiveNamed, lossesOf, lossOf } from "#shadow/job/objective.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const WORKLOAD = caseWorkload();

test("a session's time stands at its first request, and at no other", () => {
  const arrivalMicros = Float64Array.from(WORKLOAD, (_, i) => 10 * i);
  const e2eMicros = Float64Array.from(WORKLOAD, () => 5);
  const losses = sessionLosses(WORKLOAD, { arrivalMicros, e2eMicros });
  const seen = new Map<string, { readonly first: number; last: number }>();
  for (const { index, session } of WORKLOAD) {
    if (session === "") continue;
    const known = seen.get(session);
    if (known === undefined) seen.set(session, { first: index, last: index });
    else known.last = index;
  }
  for (const { first, last } of seen.values()) assert.equal(losses[first], 10 * (last - first) + 5);
  assert.equal(losses.filter((loss) => !Number.isNaN(loss)).length, seen.size);
});

test("what-if states how long sessions took under each candidate, and an objective by them counts the same", async () => {
  const setting = caseSetting(WORKLOAD);
  const [inForce, other] = [namedProfile("gnomon"), namedProfile("random")];
  const objective = objectiveNamed("session-mean", {});
  const losses = new Map<string, number>();
  const answer = await whatIf({
    setting,
    inForce,
    candidates: [other],
    observed: undefined,
    threadsMax: 1,
    onOutcomes: (outcomes) => {
      for (const one of outcomes) losses.set(one.name, lossOf(objective, lossesOf(objective, WORKLOAD, one)));
    },
  });
  const [best, worst] = ["gnomon", "random"].map((name) => answer.candidates.find((one) => one.name === name)!);
  assert.equal(best!.sessions?.count, new Set(WORKLOAD.flatMap(({ session }) => session || [])).size);
  assert.ok(best!.sessions.mean < worst!.sessions!.mean);
  for (const { name, sessions } of [best!, worst!]) {
    assert.ok(Math.abs(losses.get(name)! / sessions!.mean - 1) < 1e-9, name);
  }
});
