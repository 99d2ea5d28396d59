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

/**
 * Logarithms of predicted over observed: TTFT and TPOT of each of the first `count` requests, then the means of TTFT,
 * TPOT and E2E, which is what a question is mostly about and robust single ratios do not hold. Beside each the
 * derivative by each of `free`, with the composition of steps as it is. `drift`: that of the engine that was replayed.
 */
export function residualsOf(
  { rows }: Evidence,
  outcome: ForcedOutcome & { readonly work: WorkTimes },
  count: number,
  free: readonly Parameter[],
  drift?: StepDrift,
): Linearised {
  const places = free.map((name) => PARAMETERS.indexOf(name));
  const ratios = new Ratios(places);
  const means = { ttft: new Mean(places.length), tpot: new Mean(places.length), e2e: new Mean(places.length) };
  const { ttft, e2e } = outcome.work;
  for (let i = 0; i < count; i++) {
    const row = rows[i]!;
    if (!row.ok) continue;
    const at = i * PARAMETERS.length;
    const factor = drift === undefined ? 1 : driftAt(drift, row.arrivalAt);
    const factors = free.map((name) => (name === "delayMicros" ? 1 : factor));
    const first = places.map((j, k) => factors[k]! * ttft[at + j]!);
    ratios.add(outcome.ttftMicros[i]!, row.ttftMicros, first, 1);
    means.ttft.add(outcome.ttftMicros[i]!, row.ttftMicros, first);
    const whole = places.map((j, k) => factors[k]! * e2e[at + j]!);
    means.e2e.add(outcome.e2eMicros[i]!, row.e2eMicros, whole);
    const tpot = tpotOf(row);
    if (!(tpot > 0)) continue;
    const steps = row.outputTokens - 1;
    const each = whole.map((value, k) => (value - first[k]!) / steps);
    ratios.add(outcome.tpotMicros[i]!, tpot, each, Math.sqrt(Math.min(1, steps / STEPS_FULL)));
    means.tpot.add(outcome.tpotMicros[i]!, tpot, each);
  }
  const weight = Math.sqrt((MEANS_SHARE * ratios.size) / 3);
  for (const { predicted, observed, slopes } of Object.values(means)) ratios.add(predicted, observed, slopes, weight);
  return ratios.linearised();
}

class Ratios {
  readonly #values: number[] = [];
  readonly #columns: number[][];

  constructor(places: readonly number[]) {
    this.#columns = places.map(() => []);
  }

  get size(): number {
    return this.#values.length;
  }

  add(predicted: number, observed: number, slopes: readonly number[], weight: number): void {
    const known = predicted > 0;
    this.#values.push(weight * (known ? Math.log(predicted / observed) : HOPELESS));
    this.#columns.forEach((column, k) => column.push(known ? (weight * slopes[k]!) / predicted : 0));
  }

  linearised(): Linearised {
    return {
      residuals: Float64Array.from(this.#values),
      jacobian: this.#columns.map((column) => Float64Array.from(column)),
    };
  }
}

class Mean {
  predicted = 0;
  observed = 0;
  readonly slopes: number[];

  constructor(places: number) {
    this.slopes = Array.from({ length: places }, () => 0);
  }

  add(predicted: number, observed: number, slopes: readonly number[]): void {
    if (!(predicted > 0)) return;
    this.predicted += predicted;
    this.observed += observed;
    slopes.forEach((slope, k) => (this.slopes[k]! += slope));
  }
}
