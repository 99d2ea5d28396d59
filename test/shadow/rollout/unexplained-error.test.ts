import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { unexplainedErrors } from "#shadow/rollout/unexplained-error.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const SETTING = caseSetting(caseWorkload());
const SIMULATED = runCandidate(SETTING, namedProfile("gnomon"));
const SECOND = 1_000_000;
const SPLIT: Design = { kind: "split", windowMicros: SECOND, by: "request" };
const SWITCHBACK: Design = { kind: "switchback", windowMicros: SECOND, washoutMicros: 0 };

/** What would have been observed with so much more of E2E and TTFT, by request. */
function observedWith(addedMicros: (at: number, row: number) => number): Observed[] {
  return Array.from(SIMULATED.e2eMicros, (e2eMicros, row) => {
    const added = addedMicros(SIMULATED.arrivalMicros[row]!, row);
    const { outputTokens } = [...SETTING.workload][row]!;
    return {
      endpoint: "",
      ok: true,
      ttftMicros: SIMULATED.ttftMicros[row]! + added,
      e2eMicros: e2eMicros + added,
      outputTokens,
      cachedTokens: 0,
      attempts: 1,
      retriedMicros: 0,
    };
  });
}

const errorsOf = (design: Design, observed: readonly Observed[]) =>
  unexplainedErrors(design, SETTING, { simulated: SIMULATED, observed }, 0);

test("what all requests have alike is no error, what each has of its own is that of a difference of means", () => {
  const alike = errorsOf(
    SPLIT,
    observedWith(() => 40_000),
  );
  assert.ok(alike.e2e! < 1 && alike.ttft! < 1 && alike.tpot! < 1, JSON.stringify(alike));
  const deviation = 30_000;
  const own = errorsOf(
    SPLIT,
    observedWith((_, row) => (randomFor(3, row).next() < 0.5 ? -deviation : deviation)),
  );
  const expected = (2 * deviation) / Math.sqrt(SIMULATED.e2eMicros.length);
  assert.ok(Math.abs(own.e2e! / expected - 1) < 0.2, `${own.e2e} ${expected}`);
});

test("seconds in which everything was slow are a switchback's error and hardly a split's; pools have none that is known", () => {
  const slow = observedWith((at) => (Math.floor(at / SECOND) % 3 === 0 ? 90_000 : 0));
  const [split, switchback] = [errorsOf(SPLIT, slow), errorsOf(SWITCHBACK, slow)];
  assert.ok(switchback.e2e! > 2 * split.e2e!, `${switchback.e2e} ${split.e2e}`);
  assert.deepEqual(errorsOf({ kind: "pools", windowMicros: SECOND, by: "session", label: "pool" }, slow), {});
});

test("a plan from a trace whose requests were not as simulated runs longer, and what one rollout shows is less sure", async () => {
  const named = { name: "split by request", design: SPLIT, stages: 1 };
  const question = {
    setting: SETTING,
    control: namedProfile("gnomon"),
    other: namedProfile("round-robin"),
    designs: () => [named],
    runs: 2,
    power: 0.8,
    level: 0.05,
    figure: "e2e.mean" as const,
    hours: [1],
    threadsMax: 1,
  };
  const noisy = observedWith((_, row) => 400_000 * randomFor(5, row).next());
  const [known, unknown] = [await rolloutStudy({ ...question, observed: noisy }), await rolloutStudy(question)];
  const [with_, without] = [known, unknown].map(({ designs }) => designs[0]!.figures["e2e.mean"]);
  assert.ok(with_!.runError! > 1.2 * without!.runError!, `${with_!.runError} ${without!.runError}`);
  assert.ok(with_!.detectable[0]! > 1.2 * without!.detectable[0]!, `${with_!.detectable[0]} ${without!.detectable[0]}`);
  assert.equal(with_!.estimate, without!.estimate);
});
