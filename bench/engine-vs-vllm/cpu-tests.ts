import type { EngineConfig } from "#engine/config.ts";
import { fitLinear } from "#engine/fit/linear-fit.ts";
import { fitSteps } from "./step-fit.ts";
import { compareCpuRun, delaysOf, type RunDelays, replayCpuRun, replayRecordedSteps, sameStep } from "./cpu-replay.ts";
import type { CpuRun } from "./cpu-run.ts";
import { type Comparison, judge, mean, meanAbsoluteError, meanError, printComparisons } from "./errors.ts";
import { type MeasuredStep, resampledResiduals } from "./residuals.ts";

/** Residuals of steps are drawn one by one, and in rows, since slow times last; of so many pairs the median is printed. */
const RESIDUAL_ROWS = [1, 20];
const REPLICA_PAIRS = 7;
/** Of fewer steps with as many requests the mean shows nothing. */
const COMPARABLE_STEPS_MIN = 10;

/** The scheduler alone: the recorded starts and durations of the steps drive the clock. */
export function testScheduler(name: string, run: CpuRun): void {
  console.log(`\n(a) the scheduler alone, ${name}: ${run.requests.length} requests, ${run.steps.length} steps`);
  const replay = replayRecordedSteps(run);
  const delays = delaysOf(run, replay);
  const { visibleMicros, tokenMicros } = delays;
  console.log(`    to the scheduler ${visibleMicros / 1e3} ms, from a step to its client ${tokenMicros / 1e3} ms`);
  const comparisons = compareCpuRun(run, replay, delays);
  printComparisons(comparisons);
  const reported = run.requests.flatMap(({ cachedTokens }, i) =>
    cachedTokens === undefined ? [] : [cachedTokens === replay.cached[i] ? 1 : 0],
  );
  const exact = mean(reported);
  judge("requests with exact cached_tokens", exact, exact >= 0.995, ">= 99.5 %");
  const same = mean(run.steps.map((step, i) => (sameStep(run, step, replay.shapes[i]) ? 1 : 0)));
  judge("steps with the real composition", same, same >= 0.95, ">= 95 %");
  for (const [metric, bound] of [
    ["E2E", 0.005],
    ["TTFT", 0.05],
  ] as const) {
    const comparison = comparisons.find((candidate) => candidate.name === metric);
    const error = comparison === undefined ? NaN : meanAbsoluteError(comparison);
    judge(`${metric} MAPE`, error, error <= bound, `<= ${100 * bound} %`);
  }
  const { blocks } = run;
  const events = `${run.preemptions}${blocks === undefined ? "" : ` / ${blocks.stored} / ${blocks.removed}`}`;
  const made = `${replay.preemptions}${blocks === undefined ? "" : ` / ${replay.blocksStored} / ${replay.blocksRemoved}`}`;
  const what = `preemptions${blocks === undefined ? "" : " / blocks stored / removed"}`;
  console.log(`${events === made ? "ok  " : "MISS"} ${what}: real ${events}, engine ${made}`);
}

/** Step time and gaps fitted on one run, others predicted; each beside what two replicas of its engine differ by. */
export function testFit(name: string, fitted: CpuRun, others: readonly (readonly [string, CpuRun])[]): void {
  const { engine: config, delays } = fitCpuRun(fitted);
  console.log(`\n(b) step time fitted on ${name}: ${JSON.stringify(config)}`);
  const tested = [[`${name}, the run fitted`, fitted] as const, ...others];
  for (const [name, run] of tested) {
    console.log(`\n    ${name}`);
    const replay = replayCpuRun(run, config);
    const comparisons = compareCpuRun(run, replay, delays);
    printComparisons(comparisons);
    printFloor(run, comparisons);
    if (run === fitted) continue;
    printMachineSpeed(fitted, run);
    for (const [i, bound] of [0.15, 0.03, 0.05].entries()) {
      const comparison = comparisons[i];
      if (comparison === undefined) continue;
      const error = meanError(comparison);
      judge(`${comparison.name} mean`, error, Math.abs(error) <= bound, `within ${100 * bound} %`);
    }
  }
}

/** A machine that was faster or slower during the other run is none of the model's errors, nor can it be foretold. */
function printMachineSpeed(fitted: CpuRun, run: CpuRun): void {
  const before = decodeStepMicros(fitted);
  let expected = 0;
  let took = 0;
  let steps = 0;
  for (const [decodes, micros] of decodeStepMicros(run)) {
    const same = before.get(decodes);
    if (same === undefined || Math.min(same.length, micros.length) < COMPARABLE_STEPS_MIN) continue;
    steps += micros.length;
    took += micros.length * mean(micros);
    expected += micros.length * mean(same);
  }
  if (steps === 0) return;
  const ratio = (took / expected).toFixed(2);
  console.log(`     the machine: ${steps} decoding steps took ${ratio} times as long as equal ones of the run fitted`);
}

/** Durations of the steps without prefill, by the number of requests that decode. */
function decodeStepMicros(run: CpuRun): Map<number, number[]> {
  const decoding = run.steps.filter(({ prefills }) => prefills === 0);
  const lists = Map.groupBy(decoding, ({ decodes }) => decodes);
  return new Map([...lists].map(([decodes, steps]) => [decodes, steps.map(({ micros }) => micros)]));
}

/** What no model can be better than by chance: two runs of one that is right, with the machine's own pauses. */
function printFloor(run: CpuRun, comparisons: readonly Comparison[]): void {
  const { engine, samples, delays } = fitCpuRun(run);
  const replica = (rowSteps: number, seed: number) => {
    const stepDrift = resampledResiduals(samples, engine.stepTime, rowSteps, seed);
    return compareCpuRun(run, replayCpuRun(run, { ...engine, stepDrift }), delays);
  };
  for (const rowSteps of RESIDUAL_ROWS) {
    const pairs = Array.from({ length: REPLICA_PAIRS }, (_, i) => [
      replica(rowSteps, 2 * i),
      replica(rowSteps, 2 * i + 1),
    ]);
    const texts = comparisons.map(({ name }, metric) => {
      const apart = pairs.map(([one, other]) => {
        return meanAbsoluteError({ name, real: one![metric]!.predicted, predicted: other![metric]!.predicted });
      });
      return `${name} ${percent(apart.sort((a, b) => a - b)[REPLICA_PAIRS >> 1]!)}`;
    });
    const how = rowSteps === 1 ? "one by one" : `in rows of ${rowSteps}`;
    console.log(`     floor: two replicas of a perfect model, step residuals drawn ${how}: MAPE ${texts.join(", ")}`);
  }
  const model = comparisons.map((comparison) => `${comparison.name} ${percent(meanAbsoluteError(comparison))}`);
  console.log(`     the model against the real run: MAPE ${model.join(", ")}`);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

interface CpuFit {
  readonly engine: Pick<EngineConfig, "queueDelay" | "stepTime" | "stepGap">;
  readonly delays: RunDelays;
  /** The steps that the engine composes as the real one did. */
  readonly samples: readonly MeasuredStep[];
}

function fitCpuRun(run: CpuRun): CpuFit {
  const replay = replayRecordedSteps(run);
  const samples = run.steps.flatMap((step, i) => {
    const shape = replay.shapes[i];
    return shape !== undefined && sameStep(run, step, shape) ? [{ shape, micros: step.micros }] : [];
  });
  const gaps: number[] = [];
  const rows: number[][] = [];
  run.steps.forEach((step, i) => {
    const next = run.steps[i + 1];
    // Between two steps of which the second decodes, the engine was not waiting for work.
    if (next === undefined || next.decodes === 0) return;
    gaps.push(next.startAt - step.startAt - step.micros);
    rows.push([1, next.prefills > 0 ? 1 : 0, step.decodes]);
  });
  const [base = 0, prefill = 0, decode = 0] = fitLinear(rows, gaps, "equal").coefficients;
  const stepGap = { baseMicros: base, afterPrefillMicros: prefill, perDecodeMicros: decode };
  const delays = delaysOf(run, replay);
  const queueDelay = { baseMicros: delays.visibleMicros, perPromptTokenMicros: 0 };
  return { engine: { queueDelay, stepTime: fitSteps(samples).stepTime, stepGap }, samples, delays };
}
