import { assert } from "#core/base/assert.ts";

interface Point {
  readonly x: readonly number[];
  readonly value: number;
}

/**
 * Nelder and Mead's simplex search: a small value of a function of a few variables, from its values alone. Variables
 * are kept at 0 or more. Deterministic; `evaluations` bounds the calls.
 */
export function minimise(
  cost: (x: readonly number[]) => number,
  start: readonly number[],
  evaluations: number,
): readonly number[] {
  const spent = { calls: 0 };
  const at = (x: readonly number[]): Point => {
    const kept = x.map((value) => Math.max(0, value));
    spent.calls++;
    return { x: kept, value: cost(kept) };
  };
  const points = [at(start), ...start.map((_, i) => at(start.map((v, k) => (k === i ? v * 1.3 + 0.001 : v))))];
  while (spent.calls < evaluations) {
    points.sort((a, b) => a.value - b.value);
    const best = points[0];
    const second = points.at(-2);
    const worst = points.at(-1);
    assert(best !== undefined && second !== undefined && worst !== undefined, "a simplex has two points at least");
    const rest = points.slice(0, -1);
    const centre = start.map((_, k) => rest.reduce((sum, point) => sum + (point.x[k] ?? 0), 0) / rest.length);
    const along = (distance: number) => at(centre.map((c, k) => c + distance * (c - (worst.x[k] ?? 0))));
    const reflected = along(1);
    if (reflected.value < best.value) points[points.length - 1] = betterOf(reflected, along(2));
    else if (reflected.value < second.value) points[points.length - 1] = reflected;
    else {
      const contracted = along(reflected.value < worst.value ? 0.5 : -0.5);
      if (contracted.value < Math.min(reflected.value, worst.value)) points[points.length - 1] = contracted;
      else for (let i = 1; i < points.length; i++) points[i] = at(halfway(best, points[i] as Point));
    }
  }
  return points.reduce(betterOf).x;
}

function betterOf(a: Point, b: Point): Point {
  return b.value < a.value ? b : a;
}

function halfway(a: Point, b: Point): number[] {
  return a.x.map((value, k) => (value + (b.x[k] ?? 0)) / 2);
}
