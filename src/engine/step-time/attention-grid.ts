import { assert } from "#core/assert.ts";
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
 * Measured attention times on a grid of four variables, interpolated linearly between the grid's points and held at its
 * edges. Where nothing was measured, the line through the two next smaller numbers of decodes (or else of prefill
 * tokens) goes on.
 */
export class AttentionGrid {
  readonly #axes: readonly Float64Array[];
  readonly #strides: Int32Array;
  readonly #micros: Float64Array;

  constructor(rows: readonly AttentionRow[]) {
    assert(rows.length > 0, "an attention grid has at least one row");
    this.#axes = [0, 1, 2, 3].map((axis) => {
      return Float64Array.from([...new Set(rows.map((row) => row[axis] ?? 0))].sort((a, b) => a - b));
    });
    this.#strides = new Int32Array(AXES);
    let size = 1;
    for (let axis = AXES - 1; axis >= 0; axis--) {
      this.#strides[axis] = size;
      size *= this.#axes[axis]?.length ?? 1;
    }
    this.#micros = new Float64Array(size).fill(NaN);
    for (const row of rows) {
      let cell = 0;
      for (let axis = 0; axis < AXES; axis++) {
        cell += (this.#axes[axis]?.indexOf(row[axis] ?? 0) ?? 0) * (this.#strides[axis] ?? 0);
      }
      this.#micros[cell] = row[4];
    }
    this.#fill();
  }

  at(prefillTokens: number, prefillContext: number, decodes: number, decodeContext: number): number {
    const x = [prefillTokens, prefillContext, decodes, decodeContext];
    let cell = 0;
    const fractions = [0, 0, 0, 0];
    for (let axis = 0; axis < AXES; axis++) {
      const points = this.#axes[axis] as Float64Array;
      if (points.length === 1) continue;
      const i = segmentOf(points, x[axis] ?? 0);
      const left = points[i] ?? 0;
      const fraction = ((x[axis] ?? 0) - left) / ((points[i + 1] ?? 0) - left);
      fractions[axis] = Math.min(1, Math.max(0, fraction));
      cell += i * (this.#strides[axis] ?? 0);
    }
    return this.#blend(0, cell, fractions);
  }

  #blend(axis: number, cell: number, fractions: readonly number[]): number {
    if (axis === AXES) return this.#micros[cell] ?? 0;
    const fraction = fractions[axis] ?? 0;
    const low = this.#blend(axis + 1, cell, fractions);
    if (fraction === 0) return low;
    return low + fraction * (this.#blend(axis + 1, cell + (this.#strides[axis] ?? 0), fractions) - low);
  }

  #fill(): void {
    for (let cell = 0; cell < this.#micros.length; cell++) {
      if (!Number.isNaN(this.#micros[cell])) continue;
      this.#micros[cell] = this.#empty(cell) ?? this.#onward(cell, 2) ?? this.#onward(cell, 0) ?? this.#before(cell);
    }
  }

  /** With no prefill its context means nothing, and with no decodes theirs: the cell with a context of 0 holds. */
  #empty(cell: number): number | undefined {
    for (const [amount, context] of [
      [0, 1],
      [2, 3],
    ] as const) {
      const index = this.#index(cell, context);
      if (this.#axes[amount]?.[this.#index(cell, amount)] !== 0 || index === 0) continue;
      const value = this.#micros[cell - index * (this.#strides[context] ?? 0)] ?? NaN;
      if (!Number.isNaN(value)) return value;
    }
    return undefined;
  }

  /** The line through the two cells before this one along an axis. */
  #onward(cell: number, axis: number): number | undefined {
    const index = this.#index(cell, axis);
    if (index < 2) return undefined;
    const points = this.#axes[axis] as Float64Array;
    const stride = this.#strides[axis] ?? 0;
    const [x0, x1, x2] = [points[index - 2] ?? 0, points[index - 1] ?? 0, points[index] ?? 0];
    const y0 = this.#micros[cell - 2 * stride] ?? NaN;
    const y1 = this.#micros[cell - stride] ?? NaN;
    const value = y1 + ((y1 - y0) * (x2 - x1)) / (x1 - x0);
    return Number.isNaN(value) ? undefined : Math.max(y1, value);
  }

  /** The last known cell before this one. */
  #before(cell: number): number {
    for (let other = cell - 1; other >= 0; other--) {
      const value = this.#micros[other] ?? NaN;
      if (!Number.isNaN(value)) return value;
    }
    return this.#micros.find((value) => !Number.isNaN(value)) ?? 0;
  }

  #index(cell: number, axis: number): number {
    return Math.floor(cell / (this.#strides[axis] ?? 1)) % (this.#axes[axis]?.length ?? 1);
  }
}
