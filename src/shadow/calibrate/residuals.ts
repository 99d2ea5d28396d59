import { driftAt, type StepDrift } from "#engine/step-drift.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import type { Linearised } from "./least-squares.ts";
import { type Parameter, PARAMETERS } from "./parameters.ts";
import type { WorkTimes } from "./work-log.ts";

/** A request that the model refused is as far off as e^2. */
const HOPELESS = 2;
/** Tokens after the first from which a mean time per token counts in full; below, its noise is large. */
const STEPS_FULL = 8;
/** How much the ratios of means count, as a share of all single ratios. */
const MEANS_SHARE = 0.25;
/** Means there are: of TTFT, TPOT and E2E. */
const MEANS = 3;

/**
 * Logarithms of predicted over observed: TTFT and TPOT of each of the first `count` requests, then the means of TTFT,
 * TPOT and E2E, which is what a question is mostly about and robust single ratios do not hold. Beside each the
 * derivative by each of `free`, with the composition of steps as it is. `drift`: that of the engine that was replayed.
 */
export function residualsOf(
  { rows }: Evidence,
  outcome: TracedOutcome,
  count: number,
  free: readonly Parameter[],
  drift?: StepDrift,
): Linearised {
  const values = new Float64Array(2 * count + MEANS);
  let size = 0;
  const add = (predicted: number, observed: number, weight: number): void => {
    values[size++] = weight * (predicted > 0 ? Math.log(predicted / observed) : HOPELESS);
  };
  const means = { ttft: new Mean(), tpot: new Mean(), e2e: new Mean() };
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    if (!row.ok) continue;
    add(outcome.ttftMicros[i]!, row.ttftMicros, 1);
    means.ttft.add(outcome.ttftMicros[i]!, row.ttftMicros);
    means.e2e.add(outcome.e2eMicros[i]!, row.e2eMicros);
    const tpot = tpotOf(row);
    if (!(tpot > 0)) continue;
    add(outcome.tpotMicros[i]!, tpot, tpotWeight(row.outputTokens - 1));
    means.tpot.add(outcome.tpotMicros[i]!, tpot);
  }
  const meansWeight = Math.sqrt((MEANS_SHARE * size) / MEANS);
  for (const { predicted, observed } of Object.values(means)) add(predicted, observed, meansWeight);
  let jacobian: readonly Float64Array[] | undefined;
  return {
    residuals: values.slice(0, size),
    get jacobian() {
      return (jacobian ??= free.map((name) => slopesOf(rows, outcome, count, name, drift, size)));
    },
  };
}

type TracedOutcome = ForcedOutcome & { readonly work: WorkTimes };

/** What each of `size` residuals changes by per unit of the parameter. */
function slopesOf(
  rows: Evidence["rows"],
  outcome: TracedOutcome,
  count: number,
  parameter: Parameter,
  drift: StepDrift | undefined,
  size: number,
): Float64Array {
  const { ttft, e2e } = outcome.work;
  const place = PARAMETERS.indexOf(parameter);
  const isStretched = drift !== undefined && parameter !== "delayMicros";
  const slopes = new Float64Array(size);
  let next = 0;
  const add = (predicted: number, slope: number, weight: number): void => {
    slopes[next++] = predicted > 0 ? (weight * slope) / predicted : 0;
  };
  const means = { ttft: new MeanSlope(), tpot: new MeanSlope(), e2e: new MeanSlope() };
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    if (!row.ok) continue;
    const at = i * PARAMETERS.length + place;
    const factor = isStretched ? driftAt(drift, row.arrivalAt) : 1;
    const first = factor * ttft[at]!;
    const whole = factor * e2e[at]!;
    add(outcome.ttftMicros[i]!, first, 1);
    means.ttft.add(outcome.ttftMicros[i]!, first);
    means.e2e.add(outcome.e2eMicros[i]!, whole);
    if (!(tpotOf(row) > 0)) continue;
    const steps = row.outputTokens - 1;
    const each = (whole - first) / steps;
    add(outcome.tpotMicros[i]!, each, tpotWeight(steps));
    means.tpot.add(outcome.tpotMicros[i]!, each);
  }
  const meansWeight = Math.sqrt((MEANS_SHARE * next) / MEANS);
  for (const { predicted, slope } of Object.values(means)) add(predicted, slope, meansWeight);
  return slopes;
}

function tpotWeight(steps: number): number {
  return Math.sqrt(Math.min(1, steps / STEPS_FULL));
}

class Mean {
  predicted = 0;
  observed = 0;

  add(predicted: number, observed: number): void {
    if (!(predicted > 0)) return;
    this.predicted += predicted;
    this.observed += observed;
  }
}

class MeanSlope {
  predicted = 0;
  slope = 0;

  add(predicted: number, slope: number): void {
    if (!(predicted > 0)) return;
    this.predicted += predicted;
    this.slope += slope;
  }
}
