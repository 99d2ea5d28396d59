import { Curve, segmentOf } from "./curve.ts";

/** Tokens, different experts that they use, microseconds of one layer's experts. */
export type ExpertRow = readonly [tokens: number, activated: number, micros: number];

/**
 * A layer's experts, measured. `count` of them, of which a token uses `perToken`, all as often as one another: tokens
 * that choose alike would use fewer.
 */
export interface ExpertTable {
  readonly count: number;
  readonly perToken: number;
  /** Boards that the experts are spread over, each with its part of them (expert parallelism); 1 when left out. */
  readonly boards?: number;
  readonly rows: readonly ExpertRow[];
}

/** Measured times by tokens for every number of experts, and straight lines between two such numbers. */
export class ExpertTime {
  readonly #count: number;
  readonly #perToken: number;
  readonly #boards: number;
  readonly #activated: Float64Array;
  readonly #curves: readonly Curve[];

  constructor({ count, perToken, rows, boards = 1 }: ExpertTable) {
    this.#count = count;
    this.#perToken = perToken;
    this.#boards = boards;
    const byActivated = Map.groupBy(rows, ([, activated]) => activated);
    const activated = [...byActivated.keys()].sort((a, b) => a - b);
    this.#activated = Float64Array.from(activated);
    this.#curves = activated.map(
      (number) => new Curve((byActivated.get(number) ?? []).map(([tokens, , micros]) => [tokens, micros])),
    );
  }

  /** Of `all` tokens on all boards: each computes its part of the choices, for its part of the experts. */
  micros(all: number): number {
    const tokens = all / this.#boards;
    const activated = activatedExperts(this.#count, this.#perToken, all) / this.#boards;
    const points = this.#activated;
    const i = segmentOf(points, activated);
    const low = this.#curves[i]!.at(tokens);
    const left = points[i]!;
    if (points.length === 1 || activated <= left) return low;
    const part = (activated - left) / (points[i + 1]! - left);
    return Math.max(0, low + part * (this.#curves[i + 1]!.at(tokens) - low));
  }
}

/**
 * Expected number of different experts that some tokens use when each token draws its own evenly:
 * N (1 - ((N - k) / N)^tokens), multiplied out rather than raised, since powers differ between engines in the last bit.
 */
export function activatedExperts(count: number, perToken: number, tokens: number): number {
  let missed = 1;
  for (let i = 0; i < tokens && missed > 1e-12; i++) missed *= (count - perToken) / count;
  return count * (1 - missed);
}
