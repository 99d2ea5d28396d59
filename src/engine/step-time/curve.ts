import { assert } from "#core/base/assert.ts";

/** A measured function of one variable: straight lines between points, and beyond the ends along the last one. */
export class Curve {
  readonly #xs: Float64Array;
  readonly #ys: Float64Array;

  /** Points [x, y] in any order, at least one, no x twice. */
  constructor(points: readonly (readonly [number, number])[]) {
    assert(points.length > 0, "a curve has at least one point");
    const sorted = [...points].sort((a, b) => a[0] - b[0]);
    this.#xs = Float64Array.from(sorted, (point) => point[0]);
    this.#ys = Float64Array.from(sorted, (point) => point[1]);
  }

  at(x: number): number {
    const xs = this.#xs;
    const ys = this.#ys;
    if (xs.length === 1) return ys[0] ?? 0;
    const i = segmentOf(xs, x);
    const left = xs[i] ?? 0;
    const low = ys[i] ?? 0;
    // Below the first point the first value holds: a kernel does not get cheaper than its launch.
    if (x <= left) return low;
    return low + ((x - left) * ((ys[i + 1] ?? 0) - low)) / ((xs[i + 1] ?? 0) - left);
  }
}

/** Index i of the segment [xs[i], xs[i + 1]] that x lies in, or of the first or last one if it lies outside. */
export function segmentOf(xs: Float64Array, x: number): number {
  let low = 0;
  let high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) <= x) low = middle;
    else high = middle;
  }
  return low;
}
