import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import { Curve } from "#engine/step-time/curve.ts";
import type { CurvePoint } from "#engine/step-time/kernel-table.ts";

/** Sorted values, of which each kept one is at least so many times the one before; the last one is kept. */
export function thinned(values: Iterable<number>, times: number): number[] {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  let kept = -1;
  return sorted.filter((value, i) => {
    const stays = value >= kept * times || i === sorted.length - 1;
    if (stays) kept = value;
    return stays;
  });
}

/** The mean where one x was measured more than once, thinned. */
export function curveOf(points: readonly CurvePoint[], times: number): CurvePoint[] {
  const groups = Map.groupBy(points, ([x]) => x);
  return thinned(groups.keys(), times).map((x) => {
    const own = groups.get(x)!;
    return [x, own.reduce((sum, [, micros]) => sum + micros, 0) / own.length];
  });
}

/** The least where one x was measured more than once, in the order in which they came. */
export function quickest(points: Iterable<CurvePoint>): CurvePoint[] {
  const best = new Map<number, number>();
  for (const [x, micros] of points) best.set(x, Math.min(micros, best.get(x) ?? Infinity));
  return [...best];
}

/** Curves added up, each so many times. */
export function sumOf(parts: readonly (readonly [times: number, points: readonly CurvePoint[]])[]): CurvePoint[] {
  const curves = parts.map(([times, points]) => [times, new Curve(points)] as const);
  const xs = [...new Set(parts.flatMap(([, points]) => points.map(([x]) => x)))].sort((a, b) => a - b);
  return xs.map((x) => [x, curves.reduce((sum, [times, curve]) => sum + times * Math.max(0, curve.at(x)), 0)]);
}

/** Microseconds of a prefill of so many tokens behind so many others. */
export type PrefillMicros = (tokens: number, context: number) => number;

/** A whole grid of prefills. */
export function prefillRows(
  tokens: readonly number[],
  contexts: readonly number[],
  micros: PrefillMicros,
): AttentionRow[] {
  return tokens.flatMap((count) =>
    contexts.map((context): AttentionRow => [count, context, 0, 0, micros(count, context)]),
  );
}
