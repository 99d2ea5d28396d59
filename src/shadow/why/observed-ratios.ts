import { median } from "#core/base/quantile.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import type { Observed } from "#shadow/recorded/observed.ts";

/** What a simulation shows of each request, by its place in the workload. */
export interface SimulatedTimes {
  readonly endpoint: Int32Array;
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
  readonly arrivalMicros: Float64Array;
}

/** Logarithms of observed over simulated times of one request; NaN where there is none. */
export interface RequestRatio {
  readonly index: number;
  readonly firstToken: number;
  /** Of the time from the first token to the last. */
  readonly answer: number;
}

/** A median and its standard error. */
interface Middle {
  readonly middle: number;
  readonly error: number;
}

/** What was observed at one endpoint, beside a simulation. */
export interface EngineRatios {
  /** In order of arrival. */
  readonly requests: readonly RequestRatio[];
  readonly firstTokens: Middle;
  readonly answers: Middle;
  /** Enough of them to say anything. */
  readonly isKnown: boolean;
}

const REQUESTS_MIN = 15;
const OUTPUT_TOKENS_MIN = 4;

/** Of each endpoint of a setting; first tokens only where an endpoint computes the prompts that it answers. */
export function ratiosOf(
  { endpoints }: Setting,
  observed: readonly Observed[],
  times: SimulatedTimes,
  hasFirstTokens: boolean,
): EngineRatios[] {
  const places = new Map(endpoints.map(({ id }, place) => [id, place]));
  const at = endpoints.map((): RequestRatio[] => []);
  observed.forEach(({ ok, endpoint, attempts, ttftMicros, e2eMicros, outputTokens }, index) => {
    const place = places.get(endpoint);
    if (!ok || place === undefined || times.endpoint[index] !== place) return;
    const [ttft, e2e] = [times.ttftMicros[index]!, times.e2eMicros[index]!];
    const firstToken = hasFirstTokens && attempts === 1 ? logRatio(ttftMicros, ttft) : NaN;
    const answer = outputTokens >= OUTPUT_TOKENS_MIN ? logRatio(e2eMicros - ttftMicros, e2e - ttft) : NaN;
    if (!Number.isNaN(firstToken) || !Number.isNaN(answer)) at[place]!.push({ index, firstToken, answer });
  });
  return at.map((requests): EngineRatios => {
    requests.sort((a, b) => times.arrivalMicros[a.index]! - times.arrivalMicros[b.index]!);
    const answers = middleOf(requests.map(({ answer }) => answer));
    const firstTokens = middleOf(requests.map(({ firstToken }) => firstToken));
    return { requests, answers, firstTokens, isKnown: requests.length >= REQUESTS_MIN };
  });
}

function logRatio(observed: number, simulated: number): number {
  const ratio = observed / simulated;
  return Number.isFinite(ratio) && ratio > 0 ? Math.log(ratio) : NaN;
}

/** Of fewer than so many nobody knows. */
function middleOf(values: readonly number[]): Middle {
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length < REQUESTS_MIN) return { middle: NaN, error: NaN };
  const middle = median(known);
  const spread = 1.4826 * median(known.map((value) => Math.abs(value - middle)));
  return { middle, error: (1.2533 * spread) / Math.sqrt(known.length) };
}
