import assert from "node:assert/strict";
import { test } from "node:test";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { namedDesigns, windowLengths } from "#shadow/job/rollout-design.ts";
import { type RolloutQuestion, rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const SETTING = caseSetting(caseWorkload());
const SECOND = 1_000_000;

function question(control: string, other: string): RolloutQuestion {
  const designs = (spanMicros: number) =>
    namedDesigns({
      spanMicros,
      requests: SETTING.workload.length,
      endpoints: 3,
      hasSessions: true,
      hasTenants: false,
      canarySteps: [25, 50],
      windowMicros: [SECOND],
    });
  return {
    setting: SETTING,
    control: namedProfile(control),
    other: namedProfile(other),
    designs,
    runs: 2,
    power: 0.8,
    level: 0.05,
    figure: "e2e.mean",
    hours: [1, 24],
    threadsMax: 1,
  };
}

test("a profile against itself: the truth is nothing, and every design shows nothing beyond chance", async () => {
  const { designs, truth } = await rolloutStudy(question("gnomon", "gnomon"));
  assert.deepEqual(truth.control, truth.other);
  assert.deepEqual(
    designs.map(({ name }) => name),
    ["switchback 1 s", "pools", "split by session", "split by request", "canary at 5 %", "canary at 25 %"],
  );
  for (const { name, figures } of designs) {
    for (const [key, { truth: known, bias, biasError }] of Object.entries(figures)) {
      assert.equal(known, 0, `${name} ${key}`);
      if (biasError === undefined || Number.isNaN(biasError)) continue;
      // Pools halve the fleet: what its engines do then is another matter than who decides.
      if (name !== "pools") assert.ok(Math.abs(bias) <= 5 * biasError, `${name} ${key}: ${bias} +- ${biasError}`);
    }
  }
});

test("the truth is the whole fleet by one against the other; a longer rollout finds smaller differences", async () => {
  const asked = question("gnomon", "round-robin");
  const { designs, startMicros } = await rolloutStudy(asked);
  const [control, other] = [asked.control, asked.other].map((arm) => runCandidate(SETTING, arm));
  const counted = control!.e2eMicros.map((_, row) => row).filter((row) => control!.arrivalMicros[row]! >= startMicros);
  const difference = counted.reduce((sum, row) => sum + other!.e2eMicros[row]! - control!.e2eMicros[row]!, 0);
  const split = designs.find(({ name }) => name === "split by session")!;
  const { truth, estimate, bias, detectable, varianceLeft } = split.figures["e2e.mean"];
  assert.ok(Math.abs(truth - difference / counted.length) < 1, `${truth} ${difference / counted.length}`);
  assert.equal(bias, estimate - truth);
  assert.ok(detectable[1]! < detectable[0]! / 3, detectable.join(" "));
  assert.ok(varianceLeft! < 0.9, `predictions explain some of the variance: ${varianceLeft} is left`);
});

test("the whole of a session counts from its first request to its last answer, of those that began while arms are compared", async () => {
  const asked = question("gnomon", "round-robin");
  const { truth, startMicros } = await rolloutStudy(asked);
  for (const [arm, { sessions }] of [
    [asked.control, truth.control],
    [asked.other, truth.other],
  ] as const) {
    const { arrivalMicros, e2eMicros } = runCandidate(SETTING, arm);
    const spans = new Map<string, { begin: number; end: number }>();
    for (const { session, index } of SETTING.workload) {
      const [at, end] = [arrivalMicros[index]!, arrivalMicros[index]! + e2eMicros[index]!];
      const span = spans.get(session);
      if (span === undefined) spans.set(session, { begin: at, end });
      else span.end = Math.max(span.end, end);
    }
    const times = [...spans.values()].filter(({ begin }) => begin >= startMicros).map(({ begin, end }) => end - begin);
    assert.equal(sessions?.count, times.length);
    assert.ok(times.length > 50 && times.length < SETTING.workload.length);
    assert.ok(Math.abs(sessions.mean - times.reduce((sum, time) => sum + time, 0) / times.length) < 1);
  }
});

test("windows are as long as the trace has room for", () => {
  assert.deepEqual(windowLengths({ spanMicros: 3600 * SECOND, requests: 12_000 }), [
    300 * SECOND,
    120 * SECOND,
    60 * SECOND,
  ]);
  assert.deepEqual(windowLengths({ spanMicros: 3600 * SECOND, requests: 900 }), [300 * SECOND]);
  assert.deepEqual(windowLengths({ spanMicros: 60 * SECOND, requests: 100 }), [7 * SECOND]);
});
