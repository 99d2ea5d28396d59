import type { Micros } from "../../base/units.ts";
import type { ArmTally } from "./arm-tally.ts";
import type { Membership } from "./member-tallies.ts";
import { TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";
import { shareAtLeast } from "./share-bound.ts";
import { TimeHistogram } from "./time-histogram.ts";

/** What a guardrail watches: a time in microseconds, or a share of requests in [0, 1]. */
export type GuardedFigure = `${TimeMetric}.${TimeFigure}` | RateFigure | "overdue-rate";
/** miss-rate: of prompt tokens those that no cache had. slow-rate: of requests the slowest among those that ended beside them. */
export type RateFigure = "error-rate" | "refused-rate" | "miss-rate" | "slow-rate";

/** What a rate counts, of what. */
export const RATES: Readonly<Record<RateFigure, (counts: ArmTally["counts"]) => readonly [some: number, all: number]>> =
  {
    "error-rate": ({ failed, requests }) => [failed, requests],
    "refused-rate": ({ refused, requests }) => [refused, requests],
    "miss-rate": ({ promptTokens, cachedTokens }) => [promptTokens - cachedTokens, promptTokens],
    "slow-rate": ({ slow, ranked }) => [slow, ranked],
  };

export const GUARDED_FIGURES: readonly GuardedFigure[] = [
  ...TIME_METRICS.flatMap((metric) => TIME_FIGURES.map((figure) => `${metric}.${figure}` as const)),
  "error-rate",
  "refused-rate",
  "miss-rate",
  "slow-rate",
  "overdue-rate",
];

/**
 * A limit that takes an arm back as soon as it is crossed, whatever the comparison shows so far: as soon as the lower
 * end of where the arm's figure may be is above it.
 */
export interface Guardrail {
  /** `overdue-rate`: requests that waited, or wait still, longer than `overdueMicros` for their first token. */
  readonly figure: GuardedFigure;
  /** The arm's figure may be at most this. */
  readonly absoluteMax?: number;
  /** It may be at most this multiple of the control's; has no effect while the control's is 0. */
  readonly relativeMax?: number;
  /** A relative limit is judged for each of them that has samples enough, instead of for all requests together. */
  readonly each?: Membership;
  /** Fewer samples of the arm, or of the control where it is compared with it, decide nothing. */
  readonly samplesMin: number;
  /**
   * It counts as crossed once it has been at every look for so long: the first requests of a window may meet one
   * hiccup. 0 where it is left out.
   */
  readonly holdMicros?: Micros;
  /** Of `overdue-rate` alone; OVERDUE_MICROS where it is left out. */
  readonly overdueMicros?: Micros;
}

/** A first token that took as long is overdue. */
const OVERDUE_MICROS: Micros = 30_000_000;

/** From when a first token is overdue. */
export function overdueOf({ overdueMicros = OVERDUE_MICROS }: Guardrail): Micros {
  return overdueMicros;
}

/** A request that has not ended. */
export interface OpenRequest {
  readonly arm: number;
  /** Its window, or what stands for one outside of windows. */
  readonly stretch: number;
  /** The part of it in which it came. */
  readonly slice: number;
  /** Since its arrival at the router. */
  readonly ageMicros: Micros;
  /** From its arrival to its first token; undefined while it waits for it. */
  readonly ttftMicros: Micros | undefined;
}

/** An arm's requests of one stretch: those that ended, and those that have not. */
export interface GuardedRequests {
  readonly ended: ArmTally;
  readonly open: readonly OpenRequest[];
  /** What all of them count as: those that came at the same time are alike. */
  readonly independent: number;
}

/** How far an arm is from a limit. */
export interface GuardrailReading {
  readonly arm: number;
  readonly guardrail: Guardrail;
  /** Whom it was judged for, such as `tenant NAME`; absent where it was for all. */
  readonly of?: string;
  /** NaN without samples. */
  readonly value: number;
  /** What it is at least, at every look together; NaN where too little is known. */
  readonly low: number;
  /** The control's figure, which a relative limit is made of; NaN of an absolute one, or where it has too few samples. */
  readonly control: number;
  /** NaN while it is not known. */
  readonly limit: number;
  readonly samples: number;
  readonly crossed: boolean;
}

/**
 * An arm in its latest stretch against an absolute limit; `evidence` is the natural logarithm of what is needed to be sure.
 * A request that has not ended counts for as long as it has lasted, which it will at least have taken: an arm that answers
 * nothing is found by what waits there.
 */
export function guardrailReading(
  guardrail: Guardrail,
  arm: number,
  latest: GuardedRequests,
  evidence: number,
): GuardrailReading {
  const { absoluteMax = Infinity, samplesMin } = guardrail;
  const { samples, value, atLeast } = measuredOf(guardrail, latest);
  const low = atLeast(evidence);
  const crossed = samples >= samplesMin && low > absoluteMax;
  return { arm, guardrail, value, low, control: NaN, limit: absoluteMax, samples, crossed };
}

interface Measured {
  readonly samples: number;
  /** NaN without samples. */
  readonly value: number;
  /** Its lower end, at every look together. */
  readonly atLeast: (evidence: number) => number;
}

/** What a guardrail's figure is of some requests. */
function measuredOf(guardrail: Guardrail, requests: GuardedRequests): Measured {
  const { figure } = guardrail;
  const overdueMicros = overdueOf(guardrail);
  const { ended, open, independent } = requests;
  const { requests: count } = ended.counts;
  if (figure in RATES) return shareOf(...RATES[figure as RateFigure](ended.counts), independent);
  if (figure === "overdue-rate") {
    const waiting = open.filter(({ ttftMicros, ageMicros }) => (ttftMicros ?? ageMicros) > overdueMicros).length;
    return shareOf(ended.above("ttft", overdueMicros) + waiting, count + open.length, independent);
  }
  const [metric, of] = figure.split(".") as [TimeMetric, TimeFigure];
  const times = new TimeHistogram();
  ended.addTimesTo(times, metric);
  for (const { ttftMicros, ageMicros } of metric === "tpot" ? [] : open) {
    times.add(metric === "ttft" ? (ttftMicros ?? ageMicros) : ageMicros);
  }
  const values = Math.min(times.count, independent);
  const atLeast = (evidence: number) => times.atLeast(of, values, evidence);
  return { samples: times.count, value: times.figure(of), atLeast };
}

function shareOf(some: number, all: number, independent: number): Measured {
  const count = Math.min(all, independent);
  const share = some / all;
  const atLeast = (evidence: number) => (all === 0 ? NaN : shareAtLeast(count, share, evidence));
  return { samples: all, value: share, atLeast };
}
