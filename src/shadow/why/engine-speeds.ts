import { median } from "#core/base/quantile.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { usualLevel } from "#shadow/candidate/usual-level.ts";

/** What a simulation shows of each request, by its place in the workload. */
interface Times {
  readonly endpoint: Int32Array;
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
}

/** Engines that are slower than the fleet. */
export interface SlowEngines {
  readonly engines: readonly { readonly endpoint: string; readonly factor: number }[];
  /** Of the setting, each endpoint as slow as it was, or all of them like the fleet. */
  readonly residuals: (isEven: boolean) => StepResiduals;
}

/** Below that an engine counts as the fleet's. */
const SLOW_FACTOR_MIN = 1.08;
/** So many standard errors of its own. */
const ERRORS_MIN = 4;
const REQUESTS_MIN = 15;
const OUTPUT_TOKENS_MIN = 4;
/** A slower engine has larger batches, which a simulation has only once it knows that it is slower. */
const ROUNDS = 3;

/**
 * Finds engines that are slower than the fleet, by how long they took for each token after the first beside a simulation
 * in which requests go where they went. `run` simulates with these residuals.
 */
export function slowEngines(
  setting: Setting,
  observed: readonly Observed[],
  run: (residuals: StepResiduals) => Times,
): SlowEngines | undefined {
  const { endpoints } = setting;
  const places = new Map(endpoints.map(({ id }, place) => [id, place]));
  const base = setting.residuals;
  const own = endpoints.map((_, place) => ownLevel(base, place));
  let more = endpoints.map(() => 0);
  let errors = more;
  for (let round = 0; round < ROUNDS; round++) {
    const outcome = run(withLevels(base, more));
    const ratios = endpoints.map((): number[] => []);
    observed.forEach(({ ok, endpoint, ttftMicros, e2eMicros, outputTokens }, index) => {
      const place = places.get(endpoint);
      if (!ok || place === undefined || outcome.endpoint[index] !== place || !(outputTokens >= OUTPUT_TOKENS_MIN))
        return;
      const ratio = (e2eMicros - ttftMicros) / (outcome.e2eMicros[index]! - outcome.ttftMicros[index]!);
      if (Number.isFinite(ratio) && ratio > 0) ratios[place]!.push(Math.log(ratio));
    });
    // Of an engine with fewer requests nobody knows how fast it is.
    for (const logs of ratios) if (logs.length < REQUESTS_MIN) logs.length = 0;
    if (ratios.filter(({ length }) => length > 0).length < 2) return undefined;
    errors = ratios.map(errorOfMedian);
    const medians = ratios.map((logs) => (logs.length === 0 ? NaN : median(logs)));
    // How fast all of them are together is the model's affair.
    const all = median(medians.filter((one) => !Number.isNaN(one)));
    more = more.map((level, place) => level + (Number.isNaN(medians[place]!) ? 0 : medians[place]! - all));
  }
  const whole = own.map((level, place) => level + more[place]!);
  const fleet = median(whole);
  const slower = whole.map((level, place) =>
    level - fleet >= Math.max(Math.log(SLOW_FACTOR_MIN), ERRORS_MIN * errors[place]!) ? level - fleet : 0,
  );
  if (slower.every((level) => level === 0)) return undefined;
  // An engine that is not slower is left as the setting has it, and so is how fast all are together.
  const usual = median(own);
  const even = slower.map((level, place) => (level === 0 ? 0 : usual - own[place]!));
  const slow = slower.map((level, place) => even[place]! + level);
  return {
    engines: slower.flatMap((level, place) =>
      level === 0 ? [] : [{ endpoint: endpoints[place]!.id, factor: Math.exp(level) }],
    ),
    residuals: (isEven) => withLevels(base, isEven ? even : slow),
  };
}

function ownLevel(residuals: StepResiduals | undefined, place: number): number {
  if (residuals === undefined) return 0;
  const { windows, stalls } = residuals;
  return usualLevel({ windows: [windows[place % windows.length]!], stalls });
}

function withLevels(base: StepResiduals | undefined, levels: readonly number[]): StepResiduals {
  const windows = levels.map((level, place) => {
    const logs = base?.windows[place % base.windows.length] ?? [0];
    return logs.map((log) => log + level);
  });
  if (base !== undefined) return { ...base, windows };
  return { windowMicros: Number.MAX_SAFE_INTEGER, windows, levelError: 0, delayError: 0, prefillError: 0 };
}

/** Standard error of the median, by the spread around it. */
function errorOfMedian(values: readonly number[]): number {
  if (values.length === 0) return 0;
  const middle = median(values);
  const spread = 1.4826 * median(values.map((value) => Math.abs(value - middle)));
  return (1.2533 * spread) / Math.sqrt(values.length);
}
