import { minimise } from "./simplex.ts";
import type { StepTimeSpec } from "#engine/step-time/create-step-time.ts";
import { judge, mean, meanError, printComparisons } from "./errors.ts";
import { compareGpuRun, type GpuRun, replayGpuRun } from "./gpu-run.ts";
import type { GpuSetup } from "./gpu-setup.ts";

const EVALUATIONS = 150;
/** Bounds of the mean error of TTFT, TPOT and E2E. */
const BOUNDS = [0.1, 0.03, 0.05];

/**
 * Step times from the measured kernels. Where the link between several GPUs is not known, the two figures of their
 * exchange are fitted on the first half of the requests. Experts of several GPUs exchange tokens, which no kernel
 * shows.
 */
export function testKernels(name: string, run: GpuRun, setup: GpuSetup): void {
  const experts = run.expertRows && setup.experts && { ...setup.experts, rows: run.expertRows };
  const why = refusal(run, setup);
  if (why !== "") {
    console.log(`\n(c) ${name}, measured kernels: refused: ${why}`);
    return;
  }
  const kernels = {
    ...run.kernels,
    layers: setup.layers,
    ...(experts && { experts }),
    ...(setup.exchange && { exchange: setup.exchange }),
  };
  const withExchange = (x: readonly number[]): StepTimeSpec => {
    return { ...kernels, baseMicros: x[0] ?? 0, perTokenMicros: x[1] ?? 0 };
  };
  let stepTime: StepTimeSpec = kernels;
  let how = "nothing fitted";
  if (setup.gpus > 1 && setup.exchange === undefined) {
    const x = fitHalf(run, withExchange, [5000, 50]);
    stepTime = withExchange(x);
    how = `fitted on the first half: ${x.map((value) => value.toFixed(1)).join(" us a step, ")} us a token`;
  }
  report(`(c) ${name}, measured kernels, ${how}`, run, stepTime);
}

/** Why kernels do not show a step of this engine; "" where they can. */
function refusal({ notes, engine, expertRows }: GpuRun, { experts }: GpuSetup): string {
  if (notes.length > 0) return notes.join("; ");
  if (experts === undefined) return "";
  if (engine.dataParallel > 1) return "the ranks of a mixture of experts take every step together";
  return expertRows === undefined ? "kernels/moe.csv: expected the times of the experts, got no file" : "";
}

/**
 * Coefficients fitted on the first half of the requests by arrival, tested on the second. No step takes less than the
 * reading of the weights: in a run whose steps are all full, nothing else separates the base from the rest.
 */
export function testCoefficients(name: string, run: GpuRun, setup: GpuSetup): void {
  const spec = (x: readonly number[]): StepTimeSpec => ({
    kind: "coefficients",
    baseMicros: setup.weightsMicros + (x[0] ?? 0),
    perPrefillTokenMicros: x[1] ?? 0,
    perDecodeMicros: x[2] ?? 0,
    perDecodeContextTokenMicros: x[3] ?? 0,
  });
  const x = fitHalf(run, spec, [1000, 100, 50, 0.1]);
  report(`(c) ${name}, coefficients ${JSON.stringify(spec(x))}`, run, spec(x));
}

/**
 * Least sum over the requests of the first half of squared errors, relative for the time per token, which separates small
 * batches from large ones, and relative to the mean for the first token and the whole. Two searches, the second from
 * where the first one ended.
 */
function fitHalf(
  run: GpuRun,
  spec: (x: readonly number[]) => StepTimeSpec,
  start: readonly number[],
): readonly number[] {
  const half = run.requests.length / 2;
  const cost = (x: readonly number[]) => {
    const replay = replayGpuRun(run, { stepTime: spec(x) });
    let sum = 0;
    for (const { name, real, predicted } of compareGpuRun(run, replay, (number) => number < half)) {
      const average = mean(real);
      real.forEach((value, i) => (sum += (((predicted[i] ?? 0) - value) / (name === "TPOT" ? value : average)) ** 2));
    }
    return sum;
  };
  return minimise(cost, minimise(cost, start, EVALUATIONS), EVALUATIONS);
}

function report(title: string, run: GpuRun, stepTime: StepTimeSpec): void {
  const half = run.requests.length / 2;
  const replay = replayGpuRun(run, { stepTime });
  console.log(
    `\n${title}\n    ${run.notes.map((note) => `${note}\n    `).join("")}preemptions ${replay.preemptions}, cached tokens ${replay.cachedTokens}${run.kvBlocks === undefined ? "; KV blocks not recorded, enough assumed" : ""}; all requests`,
  );
  printComparisons(compareGpuRun(run, replay, () => true));
  console.log("    second half");
  const second = compareGpuRun(run, replay, (number) => number >= half);
  printComparisons(second);
  for (const [i, comparison] of second.entries()) {
    const error = meanError(comparison);
    const bound = BOUNDS[i] ?? 0;
    judge(`${comparison.name} mean, second half`, error, Math.abs(error) <= bound, `within ${100 * bound} %`);
  }
}
