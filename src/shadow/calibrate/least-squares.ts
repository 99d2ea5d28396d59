import { invert, type Matrix } from "./matrix.ts";

export interface LeastSquaresFit {
  readonly x: readonly number[];
  /**
   * Standard error of each variable, in its own unit; Infinity where the residuals cannot separate it from the others,
   * NaN where it lies at its bound of 0.
   */
  readonly errors: readonly number[];
  readonly residuals: Float64Array;
  readonly evaluations: number;
}

const ROUNDS_MAX = 40;
const TRIES_MAX = 8;
/** A round that gains less than this part of the cost is the last. */
const GAIN_MIN = 1e-4;
/** Huber's constant, 95 % efficient for normal residuals, in units of 1.4826 medians. */
const HUBER = 1.345 * 1.4826;
/** Residuals below this are never called outliers. */
const KNEE_MIN = 1e-3;

/**
 * Residuals at an x, and what each would change by per unit of each variable: a column per variable, asked for only where a
 * step goes on from this x, since it may cost many times the residuals.
 */
export interface Linearised {
  readonly residuals: Float64Array;
  readonly jacobian: readonly Float64Array[];
}

/**
 * Levenberg and Marquardt's search for the x >= 0 with the least Huber cost of its residuals: squares near 0, absolute
 * values beyond the knee. The Jacobian may be rough, since a step counts only if the cost itself falls. Deterministic.
 * Yields after every evaluation, so that a caller with other work may put the next one off.
 */
export function* leastSquares(
  at: (x: readonly number[]) => Linearised,
  start: readonly number[],
): Generator<void, LeastSquaresFit> {
  let x = start.map((value) => Math.max(0, value));
  let here = at(x);
  yield;
  let evaluations = 1;
  let damping = 1e-3;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const knee = kneeOf(here.residuals);
    const cost = huberCost(here.residuals, knee);
    const equations = normalEquations(here, knee);
    let gained = 0;
    for (let attempt = 0; attempt < TRIES_MAX; attempt++) {
      const tried = stepFrom(x, equations, damping);
      const next = at(tried);
      evaluations++;
      yield;
      const nextCost = huberCost(next.residuals, knee);
      if (nextCost < cost) {
        gained = cost - nextCost;
        [x, here] = [tried, next];
        damping = Math.max(1e-9, damping / 10);
        break;
      }
      damping *= 6;
    }
    if (gained <= GAIN_MIN * cost) break;
  }
  const knee = kneeOf(here.residuals);
  const { residuals } = here;
  return {
    x,
    residuals,
    evaluations,
    get errors() {
      return standardErrors(x, here, knee);
    },
  };
}

/** Where the damped normal equations lead. A variable at 0 that would go below it is left there. */
function stepFrom(x: readonly number[], equations: NormalEquations, damping: number): number[] {
  let free = x.map((_, j) => j);
  for (;;) {
    const { normal, gradient } = equationsOf(equations, free);
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
function standardErrors(x: readonly number[], here: Linearised, knee: number): number[] {
  const free = x.map((_, j) => j).filter((j) => x[j]! > 0);
  const { normal } = equationsOf(normalEquations(here, knee), free);
  const scales = normal.map((row, a) => Math.sqrt(row[a]!) || 1);
  const inverse = invert(normal.map((row, a) => row.map((v, b) => v / (scales[a]! * scales[b]!))));
  let squares = 0;
  for (const residual of here.residuals) squares += weightOf(residual, knee) * residual * residual;
  const variance = squares / Math.max(1, here.residuals.length - free.length);
  return x.map((_, j) => {
    const a = free.indexOf(j);
    if (a < 0) return NaN;
    const own = inverse?.[a]?.[a];
    return own === undefined || normal[a]![a] === 0 ? Infinity : Math.sqrt(variance * Math.max(0, own)) / scales[a]!;
  });
}

/** J' W J and J' W r. */
interface NormalEquations {
  readonly normal: Matrix;
  readonly gradient: readonly number[];
}

function normalEquations({ residuals, jacobian }: Linearised, knee: number): NormalEquations {
  const weights = residuals.map((residual) => weightOf(residual, knee));
  const normal = jacobian.map((): number[] => []);
  jacobian.forEach((column, a) => {
    for (let b = 0; b <= a; b++) normal[a]![b] = normal[b]![a] = weightedProduct(column, jacobian[b]!, weights);
  });
  return { normal, gradient: jacobian.map((column) => weightedProduct(column, residuals, weights)) };
}

/** Those of some of the variables, the others being left where they are. */
function equationsOf({ normal, gradient }: NormalEquations, free: readonly number[]): NormalEquations {
  return { normal: free.map((a) => free.map((b) => normal[a]![b]!)), gradient: free.map((a) => gradient[a]!) };
}

function weightedProduct(a: Float64Array, b: Float64Array, weights: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]! * weights[i]!;
  return sum;
}

function weightOf(residual: number, knee: number): number {
  const size = Math.abs(residual);
  return size <= knee ? 1 : knee / size;
}

/** Sum over residuals: squares over 2 up to the knee, straight on beyond it. */
export function huberCost(r: Float64Array, knee: number): number {
  let sum = 0;
  for (const residual of r) {
    const size = Math.abs(residual);
    sum += size <= knee ? (size * size) / 2 : knee * (size - knee / 2);
  }
  return sum;
}

/** The knee that fits residuals of this size. */
export function kneeOf(r: Float64Array): number {
  const sizes = r.map(Math.abs).sort();
  return Math.max(KNEE_MIN, HUBER * (sizes[sizes.length >> 1] ?? 0));
}
