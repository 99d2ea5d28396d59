/** Maps values to coordinates, and decides where an axis has its marks. */
export interface Scale {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

const LOG_STEPS = [1, 2, 5];

/** From `low` to `high`, which are above 0, evenly by ratio. */
export function logScale(low: number, high: number, from: number, to: number): Scale {
  const span = Math.log(high / low) || 1;
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of LOG_STEPS) {
      const tick = step * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  const kept = ticks.length > 7 ? ticks.filter((tick) => /^1(?:e|0*$|\.?0*$)|^0\.0*1$/.test(String(tick))) : ticks;
  return { at: (value) => from + ((to - from) * Math.log(value / low)) / span, ticks: kept };
}

/** From `low` to `high` evenly, with about `marks` round marks. */
export function linearScale(low: number, high: number, from: number, to: number, marks = 5): Scale {
  const span = high - low || 1;
  const rough = span / marks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
  return { at: (value) => from + ((to - from) * (value - low)) / span, ticks };
}
