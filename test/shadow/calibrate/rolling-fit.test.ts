import assert from "node:assert/strict";
import { test } from "node:test";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { engineWith, type Parameters, parametersOf, parametersOfEngine } from "#shadow/calibrate/parameters.ts";
import type { FitReport } from "#shadow/calibrate/fit-report.ts";
import { RollingFit } from "#shadow/calibrate/rolling-fit.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { runOn, type Traffic } from "./simulated-run.ts";

const SIZES = engineDefaults({ kvBlocks: 3000, sequencesMax: 32, asyncScheduling: true });
const TRUE: Parameters = parametersOf(
  (name) =>
    ({ delayMicros: 2500, baseMicros: 8000, perPrefillTokenMicros: 30, perDecodeMicros: 60 })[name as string] ?? 0,
);
const TRUTH = engineWith(SIZES, TRUE);
/** Another machine than the true one: everything takes twice as long. */
const WRONG = engineWith(
  SIZES,
  parametersOf((name) => 2 * TRUE[name]),
);
const REQUESTS_MAX = 200;

/** Traffic whose header has how the engines schedule, so that a fit need not try both ways. */
function statedRun(truth: EngineConfig, traffic: Traffic): RecordedRun {
  const run = runOn(truth, traffic);
  return { ...run, header: { ...run.header, engine: { ...run.header.engine, asyncScheduling: true } } };
}

function attempt(fit: RollingFit, run: RecordedRun): { readonly report: FitReport; readonly pauses: number } {
  const steps = fit.attempt(run);
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next();
    if (done === true) return { report: value, pauses };
  }
}

test("from a wrong engine the first window leads to the true one, and the error that is reported shrinks with it", () => {
  const fit = new RollingFit(WRONG, REQUESTS_MAX);
  const { report, pauses } = attempt(fit, runOn(TRUTH, { seed: 1 }));
  assert.equal(report.outcome, "accepted");
  assert.equal(report.requests, REQUESTS_MAX);
  assert.ok(pauses > 5, "it can be interrupted");
  assert.deepEqual(fit.engine, report.engine);
  const found = parametersOfEngine(fit.engine)!;
  for (const name of ["baseMicros", "perPrefillTokenMicros"] as const)
    assert.ok(Math.abs(found[name] / TRUE[name] - 1) < 0.03, `${name} ${found[name]}`);
  for (const error of [report.heldOut, ...Object.values(report.heldOutByEndpoint)]) {
    assert.ok(Math.abs(error!.e2eMicros!.meanRelative) < 0.02 && error!.ttftMicros!.mape < 0.1);
  }
  assert.deepEqual(Object.keys(report.heldOutByEndpoint), ["a", "b"]);
});

test("a window that does not suffice leaves the engine as it is, names the traffic that would, and still tests it", () => {
  const fit = new RollingFit(TRUTH, REQUESTS_MAX);
  const { report } = attempt(fit, statedRun(TRUTH, { seed: 3, gapMicros: 3_000_000 }));
  assert.equal(report.outcome, "not-identified");
  assert.match(report.detail.join(), /sometimes one and sometimes many/);
  assert.deepEqual(parametersOfEngine(fit.engine), TRUE);
  assert.ok(Math.abs(report.heldOut!.e2eMicros!.meanRelative) < 1e-6, "the true engine has no error");
});

test("too few requests are reported as such, and nothing is tried", () => {
  const fit = new RollingFit(TRUTH, REQUESTS_MAX);
  const { report, pauses } = attempt(fit, statedRun(TRUTH, { seed: 4, requests: 60 }));
  assert.equal(report.outcome, "few-requests");
  assert.deepEqual([pauses, report.heldOut], [0, undefined]);
  assert.match(report.detail[0]!, /got 48$/);
});

test("a fit that is further off on the held-out requests is turned down, and both errors are reported", () => {
  // The machine was twice as slow as the one in use while the fit's part was recorded, and is not in the part held out.
  const fast = statedRun(TRUTH, { seed: 5, requests: REQUESTS_MAX });
  const slow = statedRun(WRONG, { seed: 5, requests: REQUESTS_MAX });
  const observed = fast.observed.map((one, i) => (i < 0.7 * REQUESTS_MAX ? slow.observed[i]! : one));
  const fit = new RollingFit(TRUTH, REQUESTS_MAX);
  const { report } = attempt(fit, { ...fast, observed });
  assert.equal(report.outcome, "worse");
  assert.deepEqual(parametersOfEngine(fit.engine), TRUE);
  assert.ok(report.heldOutRefused!.e2eMicros!.meanRelative > 0.5);
  assert.ok(Math.abs(report.heldOut!.e2eMicros!.meanRelative) < 0.1);
});

test("answers that came in one burst neither win for a wrong engine nor spoil the fit", () => {
  // As a proxy delivers them that holds a stream back: all tokens after the first within 0.27 ms.
  const run = statedRun(TRUTH, { seed: 8 });
  const bursts = new Set([150, 310, 350, 380]);
  const observed = run.observed.map((one, i) => (bursts.has(i) ? { ...one, ttftMicros: one.e2eMicros - 270 } : one));
  const fast = engineWith(
    SIZES,
    parametersOf((name) => 0.2 * TRUE[name]),
  );
  const fit = new RollingFit(fast, REQUESTS_MAX);
  const { report } = attempt(fit, { ...run, observed });
  assert.equal(report.outcome, "accepted", report.detail.join());
  assert.ok(Math.abs(parametersOfEngine(fit.engine)!.baseMicros / TRUE.baseMicros - 1) < 0.05);
  const { tpotMicros } = report.heldOut!;
  assert.ok(tpotMicros!.medianApe < 0.02, `${tpotMicros!.medianApe}`);
  assert.ok(tpotMicros!.mape < 0.5, `${tpotMicros!.mape}`);
});

/** A machine that changed for good, under an engine of other sizes. */
const CHANGED = statedRun(WRONG, { seed: 6 });
const followed = new RollingFit({ ...TRUTH, kvBlocks: 50_000, sequencesMax: 7, batchTokensMax: 4096 }, REQUESTS_MAX);
const { report: FOLLOWED } = attempt(followed, CHANGED);

test("the engine follows a machine that changes for good", () => {
  assert.equal(FOLLOWED.outcome, "accepted");
  assert.ok(Math.abs(parametersOfEngine(followed.engine)!.baseMicros / (2 * TRUE.baseMicros) - 1) < 0.03);
});

test("sizes that the endpoints report win over those of the engine to begin with", () => {
  const { kvBlocks, sequencesMax, batchTokensMax } = followed.engine;
  assert.deepEqual([kvBlocks, sequencesMax, batchTokensMax], [SIZES.kvBlocks, SIZES.sequencesMax, 4096]);
});

test("requests before the window's last ones are not looked at", () => {
  const spoilt = CHANGED.observed.map((one, i) => (i < 100 ? { ...one, e2eMicros: 1e9 } : one));
  const again = attempt(new RollingFit(TRUTH, REQUESTS_MAX), { ...CHANGED, observed: spoilt }).report;
  assert.deepEqual(again.parameters, FOLLOWED.parameters);
});
