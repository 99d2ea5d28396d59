import { assert } from "#core/base/assert.ts";
import { quantile } from "#core/base/quantile.ts";

export interface LinearFit {
  /** One per column; 0 for a column that was left out. */
  readonly coefficients: readonly number[];
  /** Part of the rows that were believed, in [0, 1]. */
  readonly kept: number;
}

/** A row whose residual is further out than so many times the median residual is an accident: a pause, a page fault. */
const TRIM_MEDIANS = 25;
const ROUNDS = 20;
/** By the third round the weights have settled to a part in 10^4. */
const ROUNDS_MIN = 4;

/**
 * How much a row counts: all the same, or the less the longer it is, so that errors count relative to the square root of
 * a duration. `inverse-expected` goes by the duration that the fit expects. `inverse-target` goes by the row's own: what
 * chance made long then counts less than what it made short, and the fit falls below the mean (2 % where durations
 * scatter by 15 %), towards what is usual.
 */
export type RowWeights = "equal" | "inverse-target" | "inverse-expected";

/**
 * Least squares with coefficients of at least 0. Rows far out are left out and the rest is fitted again: a handful of
 * long pauses among thousands of steps would otherwise bend the line, while leaving out more would lower the mean. A
 * column whose coefficient turns out negative is left out.
 */
export function fitLinear(
  rows: readonly (readonly number[])[],
  targets: readonly number[],
  rowWeights: RowWeights,
): LinearFit {
  assert(rows.length === targets.length && rows.length > 0, "every row has its target");
  let columns = Array.from({ length: rows[0]?.length ?? 0 }, (_, column) => column);
  for (;;) {
    const fit = fitColumns(rows, targets, rowWeights, columns);
    const worst = Math.min(...fit.values);
    if (worst >= 0 || columns.length === 1) {
      const coefficients = (rows[0] ?? []).map((_, column) => Math.max(0, fit.values[columns.indexOf(column)] ?? 0));
      return { coefficients, kept: fit.kept };
    }
    columns = columns.filter((_, i) => fit.values[i] !== worst);
  }
}

function fitColumns(
  rows: readonly (readonly number[])[],
  targets: readonly number[],
  rowWeights: RowWeights,
  columns: readonly number[],
) {
  const believed = new Uint8Array(rows.length).fill(1);
  const weightOf = (duration: number) => (rowWeights === "equal" ? 1 : 1 / Math.max(duration, 1));
  let weights = targets.map(weightOf);
  let values: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    values = solve(normalEquations(rows, targets, weights, believed, columns));
    const predicted = rows.map((row) =>
      columns.reduce((sum, column, k) => sum + (row[column] ?? 0) * (values[k] ?? 0), 0),
    );
    if (rowWeights === "inverse-expected") weights = predicted.map(weightOf);
    const residuals = targets.map((target, i) => Math.abs(target - (predicted[i] ?? 0)) * Math.sqrt(weights[i] ?? 0));
    const limit = TRIM_MEDIANS * quantile(residuals, 0.5);
    const before = believed.join("");
    residuals.forEach((residual, i) => (believed[i] = residual <= limit ? 1 : 0));
    if ((rowWeights !== "inverse-expected" || round + 1 >= ROUNDS_MIN) && believed.join("") === before) break;
  }
  return { values, kept: believed.reduce((sum, one) => sum + one, 0) / rows.length };
}

/** Rows [A | b] of the weighted normal equations. */
function normalEquations(
  rows: readonly (readonly number[])[],
  targets: readonly number[],
  weights: readonly number[],
  believed: Uint8Array,
  columns: readonly number[],
): number[][] {
  const n = columns.length;
  const equations = Array.from({ length: n }, () => Array.from({ length: n + 1 }, () => 0));
  for (const [i, row] of rows.entries()) {
    if (believed[i] === 0) continue;
    const weight = weights[i] ?? 0;
    for (let a = 0; a < n; a++) {
      const equation = equations[a] as number[];
      const x = (row[columns[a] as number] ?? 0) * weight;
      for (let b = 0; b < n; b++) equation[b] = (equation[b] ?? 0) + x * (row[columns[b] as number] ?? 0);
      equation[n] = (equation[n] ?? 0) + x * (targets[i] ?? 0);
    }
  }
  return equations;
}

/** Gauss-Jordan with the largest pivot; a column without one (it never varied) gets 0. */
function solve(equations: number[][]): number[] {
  const n = equations.length;
  const scale = Math.max(...equations.map((equation, i) => Math.abs(equation[i] ?? 0)));
  const solved = Array.from({ length: n }, () => false);
  for (let column = 0; column < n; column++) {
    let pivot = column;
    for (let row = column; row < n; row++) {
      if (Math.abs(equations[row]?.[column] ?? 0) > Math.abs(equations[pivot]?.[column] ?? 0)) pivot = row;
    }
    const top = equations[pivot] as number[];
    equations[pivot] = equations[column] as number[];
    equations[column] = top;
    const head = top[column] ?? 0;
    if (Math.abs(head) <= scale * 1e-15) continue;
    solved[column] = true;
    for (const [row, equation] of equations.entries()) {
      if (row === column) continue;
      const factor = (equation[column] ?? 0) / head;
      for (let k = column; k <= n; k++) equation[k] = (equation[k] ?? 0) - factor * (top[k] ?? 0);
    }
  }
  return equations.map((equation, i) => (solved[i] === true ? (equation[n] ?? 0) / (equation[i] ?? 1) : 0));
}
