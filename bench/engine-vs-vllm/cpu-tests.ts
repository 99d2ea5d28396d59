import type { EngineConfig } from "#engine/config.ts";
import { fitLinear } from "#engine/fit/linear-fit.ts";
import { fitSteps } from "#engine/fit/step-fit.ts";
import {
  compareCpuRun,
  type CpuReplay,
  type CpuRun,
  LOG_DELAY_MS,
  replayCpuRun,
  type RunStep,
  VISIBLE_AFTER_MICROS,
} from "./cpu-run.ts";
import { judge, mean, meanAbsoluteError, meanError, printComparisons } from "./errors.ts";

const QUEUE_DELAY = { baseMicros: VISIBLE_AFTER_MICROS, perPromptTokenMicros: 0 };

/** The scheduler alone: the recorded starts and durations of the steps drive the clock. */
export function testScheduler(name: string, run: CpuRun): void {
  console.log(`\n(a) the scheduler alone, ${name}: ${run.requests.length} requests, ${run.steps.length} steps`);
  const replay = replayCpuRun(run, recordedClock(run));
  const comparisons = compareCpuRun(run, replay);
  printComparisons(comparisons);
  const exact = mean(run.requests.map((request, i) => (request.cached_tokens === replay.cached[i] ? 1 : 0)));
  judge("requests with exact cached_tokens", exact, exact >= 0.995, ">= 99.5 %");
  const same = mean(run.steps.map((step, i) => (sameStep(step, replay, i) ? 1 : 0)));
  judge("steps with the real composition", same, same >= 0.95, ">= 95 %");
  for (const [metric, bound] of [
    ["E2E", 0.005],
    ["TTFT", 0.05],
  ] as const) {
    const comparison = comparisons.find((candidate) => candidate.name === metric);
    const error = comparison === undefined ? NaN : meanAbsoluteError(comparison);
    judge(`${metric} MAPE`, error, error <= bound, `<= ${100 * bound} %`);
  }
  const told = `${run.preemptions} / ${run.blocksStored} / ${run.blocksRemoved}`;
  const made = `${replay.preemptions} / ${replay.blocksStored} / ${replay.blocksRemoved}`;
  console.log(`${told === made ? "ok  " : "MISS"} preemptions / blocks stored / removed: real ${told}, engine ${made}`);
}

/** Step time and gaps fitted on one run, the other predicted. Returns what was fitted. */
export function testFit(fitted: CpuRun, tested: readonly (readonly [string, CpuRun])[]): Partial<EngineConfig> {
  const config = fitCpuRun(fitted);
  console.log(`\n(b) step time fitted on light: ${JSON.stringify(config)}`);
  for (const [name, run] of tested) {
    console.log(`\n    ${name}`);
    const replay = replayCpuRun(run, config);
    const comparisons = compareCpuRun(run, replay);
    printComparisons(comparisons);
    if (run === fitted) continue;
    for (const [i, bound] of [0.15, 0.03, 0.05].entries()) {
      const comparison = comparisons[i];
      if (comparison === undefined) continue;
      const error = meanError(comparison);
      judge(`${comparison.name} mean`, error, Math.abs(error) <= bound, `within ${100 * bound} %`);
    }
  }
  return config;
}

function recordedClock(run: CpuRun): Partial<EngineConfig> {
  return {
    queueDelay: QUEUE_DELAY,
    coalesce: false,
    stepTime: {
      kind: "measured",
      stepMicros: run.steps.map((step) => Math.round(step.elapsedMs * 1e3)),
      startAt: run.steps.map((step) => Math.round((step.logAt * 1e3 - step.elapsedMs - LOG_DELAY_MS) * 1e3)),
    },
  };
}

function sameStep(step: RunStep, replay: CpuReplay, index: number): boolean {
  const shape = replay.shapes[index];
  return (
    shape !== undefined &&
    shape.prefillSequences === step.prefills &&
    shape.prefillTokens === step.prefillTokens &&
    shape.decodeSequences === step.decodes
  );
}

function fitCpuRun(run: CpuRun): Partial<EngineConfig> {
  const replay = replayCpuRun(run, recordedClock(run));
  const samples = run.steps.flatMap((step, i) => {
    const shape = replay.shapes[i];
    return shape !== undefined && sameStep(step, replay, i) ? [{ shape, micros: step.elapsedMs * 1e3 }] : [];
  });
  const gaps: number[] = [];
  const rows: number[][] = [];
  run.steps.forEach((step, i) => {
    const next = run.steps[i + 1];
    // Between two steps of which the second decodes, the engine was not waiting for work.
    if (next === undefined || next.decodes === 0) return;
    gaps.push((next.logAt - step.logAt) * 1e6 - next.elapsedMs * 1e3);
    rows.push([1, next.prefills > 0 ? 1 : 0, step.decodes]);
  });
  const [base = 0, prefill = 0, decode = 0] = fitLinear(rows, gaps, "equal").coefficients;
  return {
    queueDelay: QUEUE_DELAY,
    stepTime: fitSteps(samples).stepTime,
    stepGap: { baseMicros: base, afterPrefillMicros: prefill, perDecodeMicros: decode },
  };
}
