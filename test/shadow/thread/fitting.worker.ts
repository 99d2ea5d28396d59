import { parentPort, workerData } from "node:worker_threads";
import type { FitReport } from "#shadow/calibrate/fit-report.ts";
import type { FromShadow, ShadowWork } from "#shadow/thread/shadow-message.ts";

/**
 * Accepts an engine a microsecond slower and a tenth less sure than the one it was started with, at the first message,
 * and dies.
 */
const { engine, residuals } = workerData as ShadowWork;
const { stepTime } = engine;
if (stepTime.kind !== "coefficients") throw new Error("expected coefficients");
const SURE = { windowMicros: 1e6, windows: [[0]], levelError: 0, delayError: 0, prefillError: 0 };
const report: FitReport = {
  outcome: "accepted",
  detail: [],
  requests: 0,
  left: {},
  engine: { ...engine, stepTime: { ...stepTime, baseMicros: stepTime.baseMicros + 1 } },
  residuals: { ...SURE, levelError: (residuals ?? SURE).levelError + 0.1 },
  parameters: undefined,
  errors: {},
  heldOut: undefined,
  heldOutByEndpoint: {},
  heldOutRefused: undefined,
};

parentPort?.once("message", () => {
  parentPort?.postMessage({ kind: "fitted", report, millis: 1, cpuMicros: 1 } satisfies FromShadow);
  setTimeout(() => {
    throw new Error("broke after a fit");
  }, 20);
});
