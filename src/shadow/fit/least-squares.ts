import { assert } from "#core/assert.ts";
import { invert, type Matrix } from "./matrix.ts";

export interface LeastSquaresFit {
  readonly x: readonly number[];
  /**
   * Standard error of each variable, in its own unit; Infinity where the residuals cannot tell it from the others, NaN
   * where it lies at its bound of 0.
   */
  readonly errors: readonly number[];
  /** Sum of the residuals' robust costs. */
  readonly cost: number;
  readonly evaluations: number;
}

const ROUNDS_MAX = 20;
const TRIES_MAX = 6;
/** A round that gains less than this part of the cost is the last. */
const GAIN_MIN = 1e-4;
/** Huber's constant, 95 % efficient for normal residuals, in units of 1.4826 medians. */
const HUBER = 1.345 * 1.4826;
/** Residuals below this are never called outliers. */
const KNEE_MIN = 1e-4;

/**
 * Levenberg and Marquardt's search for the x >= 0 with the least Huber cost of residuals(x): squares near 0, absolute
 * values beyond the knee. Derivatives are differences over `steps`, so a function with small jumps, as a simulation is,
 * will do. Deterministic.
 */
export function leastSquares(
  residuals: (x: readonly number[]) => Float64Array,
  start: readonly number[],
  steps: readonly number[],
): LeastSquaresFit {
  let evaluations = 0;
  const at = (x: readonly number[]) => {
    evaluations++;
    return residuals(x);
  };
  let x = start.map((value) => Math.max(0, value));
  let r = at(x);
  let damping = 1e-2;
  let jacobian = differences(at, x, r, steps);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const knee = kneeOf(r);
    const cost = huberCost(r, knee);
    let gained = 0;
    for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
      const tried = stepFrom(x, jacobian, r, knee, damping);
      const next = at(tried);
      const nextCost = huberCost(next, knee);
      if (nextCost < cost) {
        gained = cost - nextCost;
        [x, r] = [tried, next];
        damping = Math.max(1e-9, damping / 8);
        break;
      }
      damping *= 8;
    }
    if (gained <= GAIN_MIN * cost) break;
    jacobian = differences(at, x, r, steps);
  }
  const knee = kneeOf(r);
  return { x, errors: standardErrors(x, jacobian, r, knee), cost: huberCost(r, knee), evaluations };
}

/** Columns of the Jacobian, one per variable: over a step of `steps`, or 2 % of the variable where that is more. */
function differences(
  at: (x: readonly number[]) => Float64Array,
  x: readonly number[],
  r: Float64Array,
  steps: readonly number[],
): Float64Array[] {
  return x.map((value, j) => {
    const step = Math.max(steps[j] ?? 0, 0.02 * value);
    const above = at(x.map((other, k) => (k === j ? other + step : other)));
    assert(above.length === r.length, "every x has as many residuals");
    return above.map((residual, i) => (residual - r[i]!) / step);
  });
}

/** Where the damped normal equations lead. A variable at 0 that would go below it is left there. */
function stepFrom(
  x: readonly number[],
  jacobian: readonly Float64Array[],
  r: Float64Array,
  knee: number,
  damping: number,
): number[] {
  let free = x.map((_, j) => j);
  for (;;) {
    const { normal, gradient } = normalEquations(jacobian, r, knee, free);
    const scales = normal.map((row, a) => Math.sqrt(row[a]!) || 1);
    const scaled = normal.map((row, a) => row.map((v, b) => v / (scales[a]! * scales[b]!) + (a === b ? damping : 0)));
    const inverse = invert(scaled);
    if (inverse === undefined) return [...x];
    const moves = inverse.map(
      (row, a) => -row.reduce((sum, v, b) => sum + (v * gradient[b]!) / scales[b]!, 0) / scales[a]!,
    );
    const stuck = free.filter((j, a) => x[j] === 0 && moves[a]! < 0);
    if (stuck.length === 0) {
      return x.map((value, j) => {
        const a = free.indexOf(j);
        return a < 0 ? value : Math.max(0, value + moves[a]!);
      });
    }
    free = free.filter((j) => !stuck.includes(j));
    if (free.length === 0) return [...x];
  }
}

/** sigma^2 (J' W J)^-1, of the variables that are above 0. */
function standardErrors(
  x: readonly number[],
  jacobian: readonly Float64Array[],
  r: Float64Array,
  knee: number,
): number[] {
  const free = x.map((_, j) => j).filter((j) => x[j]! > 0);
  const { normal } = normalEquations(jacobian, r, knee, free);
  const scales = normal.map((row, a) => Math.sqrt(row[a]!) || 1);
  const inverse = invert(normal.map((row, a) => row.map((v, b) => v / (scales[a]! * scales[b]!))));
  let squares = 0;
  for (const residual of r) squares += weightOf(residual, knee) * residual * residual;
  const variance = squares / Math.max(1, r.length - free.length);
  return x.map((_, j) => {
    const a = free.indexOf(j);
    if (a < 0) return NaN;
    const own = inverse?.[a]?.[a];
    return own === undefined || normal[a]![a] === 0 ? Infinity : Math.sqrt(variance * Math.max(0, own)) / scales[a]!;
  });
}

function normalEquations(jacobian: readonly Float64Array[], r: Float64Array, knee: number, free: readonly number[]) {
  const weights = r.map((residual) => weightOf(residual, knee));
  const product = (a: Float64Array, b: Float64Array) => {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]! * weights[i]!;
    return sum;
  };
  const normal: Matrix = free.map((a) => free.map((b) => product(jacobian[a]!, jacobian[b]!)));
  return { normal, gradient: free.map((a) => product(jacobian[a]!, r)) };
}

function weightOf(residual: number, knee: number): number {
  const size = Math.abs(residual);
  return size <= knee ? 1 : knee / size;
}

function huberCost(r: Float64Array, knee: number): number {
  let sum = 0;
  for (const residual of r) {
    const size = Math.abs(residual);
    sum += size <= knee ? (size * size) / 2 : knee * (size - knee / 2);
  }
  return sum;
}

function kneeOf(r: Float64Array): number {
  const sizes = r.map(Math.abs).sort();
  return Math.max(KNEE_MIN, HUBER * (sizes[sizes.length >> 1] ?? 0));
}
