import { ConfigError } from "#config/config-error.ts";
import { Curve } from "#engine/step-time/curve.ts";
import type { CurvePoint } from "#engine/step-time/kernel-table.ts";
import { quickest } from "./curves.ts";

/** Matrix products by rows of the left one (m), columns of the right one (n) and what they share (k): [m, n, k, microseconds]. */
export type ProductRow = readonly [m: number, n: number, k: number, micros: number];

/**
 * Measured products, from which those of other sizes follow: straight lines between sizes, and beyond the largest ones
 * on. A product's time is a sum of parts that go with n, with k and with both, so that lines along each are exact.
 */
export class ProductTimes {
  readonly #file: string;
  readonly #curves: ReadonlyMap<string, Curve>;
  readonly #points: readonly number[];
  readonly #widths: readonly number[];
  readonly #depths: readonly number[];

  /** The quickest where one product was measured in several ways. */
  constructor(file: string, rows: readonly ProductRow[]) {
    this.#file = file;
    const byShape = Map.groupBy(rows, ([, n, k]) => `${n} ${k}`);
    this.#curves = new Map(
      [...byShape].map(([shape, own]) => [shape, new Curve(quickest(own.map(([m, , , micros]) => [m, micros])))]),
    );
    [this.#points, this.#widths, this.#depths] = [0, 1, 2].map((at) =>
      [...new Set(rows.map((row) => row[at]!))].sort((a, b) => a - b),
    ) as [number[], number[], number[]];
  }

  /** By m. Throws ConfigError where no four products enclose this one. */
  curve(n: number, k: number): CurvePoint[] {
    const corner = (width: number, depth: number) => this.#curves.get(`${width} ${depth}`);
    const pairs = around(this.#depths, k).flatMap((depths) =>
      around(this.#widths, n).map((widths) => [widths, depths] as const),
    );
    const enclosing = pairs.find(([widths, depths]) =>
      widths.every((width) => depths.every((depth) => corner(width, depth) !== undefined)),
    );
    if (enclosing === undefined)
      throw new ConfigError([`--from-kernels: ${this.#file}: expected products about n ${n}, k ${k}, got none`]);
    const [widths, depths] = enclosing;
    return this.#points.map((m) => {
      const [low, high] = depths.map((depth) =>
        between(
          widths,
          n,
          widths.map((width) => corner(width, depth)!.at(m)),
        ),
      ) as [number, number];
      return [m, Math.max(0, between(depths, k, [low, high]))];
    });
  }
}

/** Two neighbours of a value: those that enclose it, else the two below it, else the least twice, as no kernel is quicker. */
function around(sorted: readonly number[], value: number): [number, number][] {
  const above = sorted.find((one) => one >= value);
  const [below, further] = sorted.filter((one) => one <= value).toReversed();
  if (below === undefined) return above === undefined ? [] : [[above, above]];
  const pairs: [number, number][] = above === undefined ? [] : [[below, above]];
  if (further !== undefined) pairs.push([further, below]);
  return pairs;
}

function between([low, high]: readonly number[], value: number, [left, right]: readonly number[]): number {
  if (high === low) return left!;
  return left! + ((value - low!) * (right! - left!)) / (high! - low!);
}
