import { assert } from "#core/base/assert.ts";
import { segmentOf } from "./curve.ts";

/** Prefill tokens, tokens before them, decodes, tokens before each of those, microseconds of one layer's attention. */
export type AttentionRow = readonly [
  prefillTokens: number,
  prefillContext: number,
  decodes: number,
  decodeContext: number,
  micros: number,
];

const AXES = 4;

/**
 * Measured attention times by four variables, interpolated linearly between the points of a grid; below its first
 * points the value there holds, beyond its last ones the last line goes on. Where several grids were measured and mixed
 * into one list, the largest complete one that dropping coordinates leaves is used.
 */
export class AttentionGrid {
  readonly #axes: readonly Float64Array[];
  readonly #strides = new Int32Array(AXES);
  readonly #micros: Float64Array;
  readonly #fractions = new Float64Array(AXES);

  constructor(rows: readonly AttentionRow[]) {
    assert(rows.length > 0, "an attention grid has at least one row");
    const axes = completeAxes(rows);
    this.#axes = axes.map((axis) => Float64Array.from(axis));
    let size = 1;
    for (let axis = AXES - 1; axis >= 0; axis--) {
      this.#strides[axis] = size;
      size *= axes[axis]?.length ?? 1;
    }
    this.#micros = new Float64Array(size);
    const places = axes.map((axis) => new Map(axis.map((value, place) => [value, place])));
    for (const row of rows) {
      let cell = 0;
      for (let axis = 0; axis < AXES; axis++) {
        cell += (places[axis]?.get(row[axis] as number) ?? NaN) * (this.#strides[axis] as number);
      }
      if (!Number.isNaN(cell)) this.#micros[cell] = row[4];
    }
  }

  at(prefillTokens: number, prefillContext: number, decodes: number, decodeContext: number): number {
    let cell = this.#locate(0, prefillTokens);
    cell += this.#locate(1, prefillContext);
    cell += this.#locate(2, decodes);
    cell += this.#locate(3, decodeContext);
    return Math.max(0, this.#blend(0, cell));
  }

  /** The lower corner along an axis; leaves behind how far into the segment the value lies. */
  #locate(axis: number, x: number): number {
    const points = this.#axes[axis] as Float64Array;
    this.#fractions[axis] = 0;
    if (points.length === 1) return 0;
    const i = segmentOf(points, x);
    const left = points[i] as number;
    this.#fractions[axis] = Math.max(0, (x - left) / ((points[i + 1] as number) - left));
    return i * (this.#strides[axis] as number);
  }

  #blend(axis: number, cell: number): number {
    if (axis === AXES) return this.#micros[cell] as number;
    const fraction = this.#fractions[axis] as number;
    const low = this.#blend(axis + 1, cell);
    if (fraction === 0) return low;
    return low + fraction * (this.#blend(axis + 1, cell + (this.#strides[axis] as number)) - low);
  }
}

/** Drops the coordinate with the largest part of its cells missing until none is missing. */
function completeAxes(rows: readonly AttentionRow[]): number[][] {
  let kept = rows;
  for (;;) {
    const axes = [0, 1, 2, 3].map((axis) => [...new Set(kept.map((row) => row[axis] as number))].sort((a, b) => a - b));
    const cells = axes.reduce((product, axis) => product * axis.length, 1);
    if (cells === kept.length) return axes;
    let worst = { axis: 0, value: 0, present: Infinity };
    for (const [axis, values] of axes.entries()) {
      const counts = new Map<number, number>();
      for (const row of kept) counts.set(row[axis] as number, (counts.get(row[axis] as number) ?? 0) + 1);
      for (const value of values) {
        const present = (counts.get(value) ?? 0) / (cells / values.length);
        if (values.length > 1 && present < worst.present) worst = { axis, value, present };
      }
    }
    const before = kept.length;
    kept = kept.filter((row) => row[worst.axis] !== worst.value);
    assert(kept.length < before, "no attention time is given twice for one point");
  }
}
