import assert from "node:assert/strict";
import { test } from "node:test";
import { ENGINE_FILE_SCHEMA } from "#config/engine-schema.ts";
import type { FirstTokenResiduals } from "#engine/step-drift.ts";
import { type Evidence } from "#shadow/calibrate/evidence.ts";
import { firstTokenResidualsOf } from "#shadow/calibrate/first-token-residuals.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { withFirstTokenNoise } from "#shadow/candidate/first-token-noise.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const NONE = { windowMicros: 1e6, windows: [[0]], levelError: 0, delayError: 0, prefillError: 0 };
const setting = caseSetting(caseWorkload());
const outcome = runCandidate(setting, namedProfile("gnomon"));

/** One request in fifty pauses for long, whatever it was predicted to take. */
const PAUSES: FirstTokenResiduals = {
  predictedMicros: Array.from({ length: 200 }, (_, i) => 1_000 + 500 * i),
  laterMicros: Array.from({ length: 200 }, (_, i) => (i % 50 === 7 ? 490_000 : (i % 3) - 1)),
};

function evidence(ttftMicros: readonly number[]): Evidence {
  const row = { endpoint: 0, promptTokens: 9, outputTokens: 1, cachedTokens: 0, hashes: new Int32Array(0), ok: true };
  const rows = ttftMicros.map((ttft, i) => ({ ...row, arrivalAt: i, ttftMicros: ttft, e2eMicros: ttft }));
  return { endpoints: ["a"], rows, left: {} };
}

function replayed(ttftMicros: readonly number[]) {
  const column = Float64Array.from(ttftMicros);
  return { ttftMicros: column, e2eMicros: column, tpotMicros: column, cachedTokens: column };
}

test("first tokens are later by what single ones were, not by what all had in common", () => {
  const predicted = Array.from({ length: 400 }, (_, i) => 100_000 + 10 * ((i * 7919) % 400));
  const paused = predicted.map((value, i) => value * 1.3 + (i % 40 === 3 ? 300_000 : 0));
  const { predictedMicros, laterMicros } = firstTokenResidualsOf(
    evidence(paused),
    replayed(predicted),
    new Float64Array(400),
  )!;
  assert.deepEqual([predictedMicros.length, laterMicros.length], [400, 400]);
  assert.deepEqual(
    predictedMicros.toSorted((a, b) => a - b),
    predictedMicros,
  );
  assert.equal(laterMicros.filter((later) => later > 250_000).length, 10);
  const median = laterMicros.toSorted((a, b) => a - b)[200]!;
  assert.ok(Math.abs(median) < 500, String(median));
  assert.equal(
    firstTokenResidualsOf(evidence(paused.slice(0, 30)), replayed(predicted), new Float64Array(30)),
    undefined,
  );
});

test("noise moves first tokens and all that follows alike, never before the arrival, the same for whoever asks", () => {
  const noisy = withFirstTokenNoise(outcome, PAUSES, 5, 1);
  assert.deepEqual(withFirstTokenNoise(outcome, PAUSES, 5, 1), noisy);
  assert.notDeepEqual(withFirstTokenNoise(outcome, PAUSES, 5, 2).ttftMicros, noisy.ttftMicros);
  noisy.ttftMicros.forEach((ttft, i) => {
    assert.ok(ttft > 0);
    const rest = outcome.e2eMicros[i]! - outcome.ttftMicros[i]!;
    assert.ok(Math.abs(noisy.e2eMicros[i]! - ttft - rest) < 1e-3);
  });
  const silent = { ...PAUSES, laterMicros: PAUSES.laterMicros.map(() => 0) };
  assert.deepEqual(withFirstTokenNoise(outcome, silent, 5, 1), outcome);
});

test("what a long queue was off by shrinks with the queue; a pause is as long where it is longer", () => {
  const queue: FirstTokenResiduals = { predictedMicros: [2_000_000], laterMicros: [-400_000] };
  const pause: FirstTokenResiduals = { predictedMicros: [1_000], laterMicros: [90_000] };
  const [short, long] = [queue, pause].map((residuals) => withFirstTokenNoise(outcome, residuals, 1, 1).ttftMicros);
  outcome.ttftMicros.forEach((ttft, i) => {
    if (ttft < 2_000_000) assert.ok(Math.abs(short![i]! / ttft - 0.8) < 1e-9);
    if (ttft > 1_000) assert.equal(long![i], ttft + 90_000);
  });
});

test("single slow requests widen the interval of p99, and distinguish no candidate from another", async () => {
  const ask = (firstTokens: FirstTokenResiduals | undefined) =>
    whatIf({
      setting: { ...setting, residuals: { ...NONE, firstTokens } },
      inForce: namedProfile("gnomon"),
      candidates: [{ ...namedProfile("gnomon"), name: "twin" }],
      observed: undefined,
      replicas: 8,
      threadsMax: 1,
    });
  const [none, some] = [await ask(undefined), await ask(PAUSES)];
  const width = ({ candidates }: typeof none, figure: "p50" | "p99") => {
    const { low, high } = candidates[0]!.intervals.ttftMicros![figure];
    return high / low - 1;
  };
  assert.equal(width(none, "p99"), 0);
  assert.ok(width(some, "p99") > 1 && width(some, "p99") > 3 * width(some, "p50"), JSON.stringify(some.candidates));
  for (const { differenceInterval } of some.candidates)
    assert.deepEqual(differenceInterval.ttftMicros, { low: 0, high: 0 });
});

test("an engine file's first tokens are as many as their predictions, in order", () => {
  const file = (firstTokens: unknown) =>
    ENGINE_FILE_SCHEMA.safeParse({ residuals: { windowMicros: 1e6, windows: [[0]], levelError: 0, firstTokens } });
  assert.ok(file({ predictedMicros: [1, 2], laterMicros: [-5, 7] }).success);
  for (const wrong of [
    { predictedMicros: [1, 2], laterMicros: [5] },
    { predictedMicros: [2, 1], laterMicros: [5, 5] },
    { predictedMicros: [], laterMicros: [] },
  ])
    assert.equal(file(wrong).success, false);
});
