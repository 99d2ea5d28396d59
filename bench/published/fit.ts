import { kneeOf } from "#shadow/calibrate/least-squares.ts";
import { invert } from "#shadow/calibrate/matrix.ts";
import type { Form } from "./form.ts";
import { type Predicted, replayed } from "./replay.ts";
import type { PublishedRun } from "./runs.ts";

/** Runs of one model on the same boards: what is left out together. */
export function groupOf(run: PublishedRun): string {
  return `${run.board} x${run.tp} ${run.model}${run.eager ? " eager" : ""}`;
}

/** What the formula makes of a run; undefined where it has no such model. */
export function predict(form: Form, run: PublishedRun, factors: readonly number[]): Predicted | undefined {
  const engine = form.engineFor(run, factors);
  return engine && replayed(run, engine);
}

/** Those runs whose models the formula knows. */
export function knownTo(form: Form, runs: readonly PublishedRun[]): PublishedRun[] {
  const ones = form.fitted.map(() => 1);
  return runs.filter((run) => form.engineFor(run, ones) !== undefined);
}

const TTFT_WEIGHT = 0.6;
const STEP = 0.05;

interface Row {
  readonly residual: number;
  readonly group: string;
}

/** Logarithms of predicted over published, each group counting as one run. */
function rowsOf(form: Form, runs: readonly PublishedRun[], factors: readonly number[]): Row[] {
  const sizes = Map.groupBy(runs, groupOf);
  return runs.flatMap((run) => {
    const group = groupOf(run);
    const weight = 1 / Math.sqrt(sizes.get(group)!.length);
    const { ttftMillis, tpotMillis } = predict(form, run, factors)!;
    const rows = [{ group, residual: weight * Math.log(tpotMillis / run.tpotMillis) }];
    if (run.ttftMillis !== undefined && !run.saturated)
      rows.push({ group, residual: TTFT_WEIGHT * weight * Math.log(ttftMillis / run.ttftMillis) });
    return rows;
  });
}

/** Slopes of the rows about some factors: what steps of Gauss and Newton go by. */
export class Slopes {
  readonly #form: Form;
  readonly #runs: readonly PublishedRun[];
  readonly #from: readonly number[];
  readonly #groups: readonly string[];
  readonly #residuals: Float64Array;
  readonly #jacobian: readonly Float64Array[];

  /** All runs are of models that the form knows. */
  constructor(form: Form, runs: readonly PublishedRun[], from: readonly number[], progress: () => void) {
    this.#form = form;
    this.#runs = runs;
    this.#from = from;
    this.#groups = rowsOf(form, runs, from).map(({ group }) => group);
    this.#residuals = this.#residualsAt(from);
    this.#jacobian = from.map((value, j) => {
      progress();
      const by = value * STEP + 1e-6;
      const moved = this.#residualsAt(from.map((other, k) => (k === j ? value + by : other)));
      return this.#residuals.map((residual, i) => (moved[i]! - residual) / by);
    });
  }

  /** The factors that fit all rows best but those of a group. Rows far out count less (Huber). */
  without(left: string | undefined): readonly number[] {
    const here = this.#residuals;
    const jacobian = this.#jacobian;
    const knee = kneeOf(here);
    // Rows beyond the groups' are the constants' own.
    const kept = [...here.keys()].filter((row) => left === undefined || this.#groups[row] !== left);
    const weights = here.map((residual) => Math.min(1, knee / Math.max(knee, Math.abs(residual))));
    const inner = (a: Float64Array, b: Float64Array) =>
      kept.reduce((sum, row) => sum + weights[row]! * a[row]! * b[row]!, 0);
    const normal = jacobian.map((a) => jacobian.map((b) => inner(a, b)));
    const scales = normal.map((row, i) => Math.sqrt(row[i]!) || 1);
    const inverse = invert(normal.map((row, i) => row.map((value, j) => value / (scales[i]! * scales[j]!))));
    if (inverse === undefined) throw new Error(`without ${left} the other runs do not identify the constants`);
    const gradient = jacobian.map((column) => inner(column, here));
    const moves = inverse.map(
      (row, i) => -row.reduce((sum, value, j) => sum + (value * gradient[j]!) / scales[j]!, 0) / scales[i]!,
    );
    return this.#from.map((factor, i) =>
      Math.max(FACTOR_MIN * factor, Math.min(FACTOR_MAX * factor, factor + moves[i]!)),
    );
  }

  /** Each constant's own distance from what it was believed to be is a residual beside those of the runs. */
  #residualsAt(factors: readonly number[]): Float64Array {
    const priors = this.#form.fitted.map(
      ({ believed, spread }, j) => (PRIOR_WEIGHT * Math.log(Math.max(1e-3, factors[j]! / believed))) / spread,
    );
    return Float64Array.from([...rowsOf(this.#form, this.#runs, factors).map(({ residual }) => residual), ...priors]);
  }
}

/** No step goes further: slopes do not reach so far. */
const FACTOR_MAX = 3;
const FACTOR_MIN = 1 / 3;

/** A constant one spread away costs as much as a run this far off. */
const PRIOR_WEIGHT = 0.05;
