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
  readonly cachedTokens: Float64Array;
}

/** How fast the endpoints of a setting are, by their places. */
export interface EngineSpeeds {
  readonly residuals: StepResiduals | undefined;
  /** Times that a prompt token takes longer there, beyond what steps do. */
  readonly prefill: readonly number[];
}

export interface SlowEngine {
  readonly endpoint: string;
  /** Times as long as the fleet's: of a step, and of a prompt token beyond that. */
  readonly factor: number;
  readonly prefillFactor: number;
}

/** Engines that are slower than the fleet. */
export interface SlowEngines {
  readonly engines: readonly SlowEngine[];
  /** Of the setting, each endpoint as slow as it was, or all of them like the fleet. */
  readonly speeds: (isEven: boolean) => EngineSpeeds;
}

/** Below that an engine counts as the fleet's. */
const SLOW_FACTOR_MIN = 1.08;
const SLOW_PREFILL_FACTOR_MIN = 1.3;
/** So many standard errors of its own. */
const ERRORS_MIN = 4;
const REQUESTS_MIN = 15;
const OUTPUT_TOKENS_MIN = 4;
/** A first token is compared where its own prompt's tokens are at least that part of the time until then. */
const OWN_PREFILL_SHARE_MIN = 0.2;
/** A slower engine has larger batches, which a simulation has only once it knows that it is slower. */
const ROUNDS = 5;
/** A prompt token's time is no further off than that in one round. */
const PREFILL_FACTOR_MIN = 1 / 8;

/**
 * Finds engines that are slower than the fleet, beside a simulation in which requests go where they went: by how long they
 * took for each token after the first, and, where they compute the prompts that they answer, by how much later still their
 * first tokens came. `run` simulates with these speeds.
 */
export function slowEngines(
  setting: Setting,
  observed: readonly Observed[],
  run: (speeds: EngineSpeeds) => Times,
  computesOwnPrompts: boolean,
): SlowEngines | undefined {
  const { endpoints } = setting;
  const base = setting.residuals;
  const own = endpoints.map((_, place) => ownLevel(base, place));
  const perToken = computesOwnPrompts ? perPrefillToken(setting) : 0;
  let more = endpoints.map(() => 0);
  let prefill = more;
  let found: Ratios | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const times = run({ residuals: withLevels(base, more), prefill: prefill.map(Math.exp) });
    const perTokens = more.map((level, place) => perToken * Math.exp(own[place]! + level + prefill[place]!));
    found = ratiosOf(setting, observed, times, perTokens);
    if (found === undefined) return undefined;
    const { steps, prompts } = found;
    more = more.map((level, place) => level + steps.beyond[place]!);
    // How fast steps are comes first.
    if (round > 0) prefill = prefill.map((log, place) => log + prompts.beyond[place]!);
  }
  const whole = own.map((level, place) => level + more[place]!);
  const slower = beyondFleet(whole, found!.steps.errors, SLOW_FACTOR_MIN);
  const slowerPrefill = beyondFleet(prefill, found!.prompts.errors, SLOW_PREFILL_FACTOR_MIN).map((log, place) =>
    found!.prompts.known[place]! ? log : 0,
  );
  if ([...slower, ...slowerPrefill].every((level) => level === 0)) return undefined;
  // An engine that is not slower is left as the setting has it, and so is how fast all are together.
  const usual = median(own);
  const even = slower.map((level, place) => (level === 0 ? 0 : usual - own[place]!));
  const slow = slower.map((level, place) => even[place]! + level);
  const factors = slowerPrefill.map(Math.exp);
  return {
    engines: endpoints.flatMap(({ id }, place) => {
      const [factor, prefillFactor] = [Math.exp(slower[place]!), factors[place]!];
      return factor === 1 && prefillFactor === 1 ? [] : [{ endpoint: id, factor, prefillFactor }];
    }),
    speeds: (isEven) => ({
      residuals: withLevels(base, isEven ? even : slow),
      prefill: isEven ? factors.map(() => 1) : factors,
    }),
  };
}

/** Logarithms of observed over simulated times by place, beyond the fleet's. */
interface Beyond {
  /** 0 where it is not known. */
  readonly beyond: readonly number[];
  readonly errors: readonly number[];
  readonly known: readonly boolean[];
}

interface Ratios {
  /** Of the time between two tokens. */
  readonly steps: Beyond;
  /** Of the time that a prompt token takes, by first tokens. */
  readonly prompts: Beyond;
}

/** Microseconds; 0 where the engine has none of its own. */
function perPrefillToken({ engine: { stepTime } }: Setting): number {
  return stepTime.kind === "coefficients" ? stepTime.perPrefillTokenMicros : 0;
}

function ratiosOf(
  { endpoints, workload }: Setting,
  observed: readonly Observed[],
  times: Times,
  perTokenMicros: readonly number[],
): Ratios | undefined {
  const places = new Map(endpoints.map(({ id }, place) => [id, place]));
  const [steps, prompts] = [0, 1].map(() => endpoints.map((): number[] => []));
  observed.forEach(({ ok, endpoint, attempts, ttftMicros, e2eMicros, outputTokens }, index) => {
    const place = places.get(endpoint);
    if (!ok || place === undefined || times.endpoint[index] !== place) return;
    const [ttft, e2e] = [times.ttftMicros[index]!, times.e2eMicros[index]!];
    if (outputTokens >= OUTPUT_TOKENS_MIN) pushLog(steps![place]!, (e2eMicros - ttftMicros) / (e2e - ttft));
    const prompt = (workload.at(index)!.promptTokens - times.cachedTokens[index]!) * perTokenMicros[place]!;
    if (attempts === 1 && prompt > 0 && prompt >= OWN_PREFILL_SHARE_MIN * ttft)
      pushLog(prompts![place]!, Math.max(PREFILL_FACTOR_MIN, 1 + (ttftMicros - ttft) / prompt));
  });
  const known = steps!.filter(({ length }) => length >= REQUESTS_MIN);
  return known.length < 2 ? undefined : { steps: beyondOf(steps!), prompts: beyondOf(prompts!) };
}

function pushLog(logs: number[], ratio: number): void {
  if (Number.isFinite(ratio) && ratio > 0) logs.push(Math.log(ratio));
}

/** How fast all of them are together is the model's affair; of an engine with few requests nobody knows how fast it is. */
function beyondOf(logs: readonly (readonly number[])[]): Beyond {
  const known = logs.map(({ length }) => length >= REQUESTS_MIN);
  const medians = logs.map((of, place) => (known[place]! ? median(of) : NaN));
  const all = known.some(Boolean) ? median(medians.filter((one) => !Number.isNaN(one))) : 0;
  return {
    beyond: medians.map((one) => (Number.isNaN(one) ? 0 : one - all)),
    errors: logs.map((of, place) => (known[place]! ? errorOfMedian(of) : 0)),
    known,
  };
}

/** By how much each lies above the fleet; 0 for those that lie in what may be chance. */
function beyondFleet(levels: readonly number[], errors: readonly number[], factorMin: number): number[] {
  const fleet = median(levels);
  return levels.map((level, place) =>
    level - fleet >= Math.max(Math.log(factorMin), ERRORS_MIN * errors[place]!) ? level - fleet : 0,
  );
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
  const middle = median(values);
  const spread = 1.4826 * median(values.map((value) => Math.abs(value - middle)));
  return (1.2533 * spread) / Math.sqrt(values.length);
}
