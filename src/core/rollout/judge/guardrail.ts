import type { Micros } from "../../base/units.ts";
import type { ArmTally } from "./arm-tally.ts";
import { TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";
import { shareAtLeast } from "./share-bound.ts";
import { TimeHistogram, UPPER } from "./time-histogram.ts";

/** What a guardrail watches: a time in microseconds, or a share of requests in [0, 1]. */
export type GuardedFigure = `${TimeMetric}.${TimeFigure}` | "error-rate" | "refused-rate" | "overdue-rate";

export const GUARDED_FIGURES: readonly GuardedFigure[] = [
  ...TIME_METRICS.flatMap((metric) => TIME_FIGURES.map((figure) => `${metric}.${figure}` as const)),
  "error-rate",
  "refused-rate",
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

/** What a control did in fewer slices may be nothing but luck. */
const CONTROL_SLICES_MIN = 20;

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
  /** NaN without samples. */
  readonly value: number;
  /** What it is at least, at every look together; NaN where too little is known. */
  readonly low: number;
  /**
   * What the control's figure may be, which is what the limit is made of; NaN where it was not asked or has too few
   * samples.
   */
  readonly control: number;
  /** The lowest limit that holds; NaN while none does. */
  readonly limit: number;
  readonly samples: number;
  readonly crossed: boolean;
}

/**
 * An arm in its latest stretch against a limit; `evidence` is the natural logarithm of what is needed to be sure. A
 * request that has not ended counts for as long as it has lasted, which it will at least have taken: an arm that
 * answers nothing is found by what waits there. Of the control both of its last stretches are asked, at the upper end
 * of where its figure may be, and the worse one counts: the newest one may have nothing but its quickest answers yet.
 */
export function guardrailReading(
  guardrail: Guardrail,
  arm: number,
  latest: GuardedRequests,
  control: readonly GuardedRequests[],
  evidence: number,
): GuardrailReading {
  const { absoluteMax, relativeMax, samplesMin } = guardrail;
  const { samples, value, atLeast } = measuredOf(guardrail, latest);
  const low = atLeast(evidence);
  const seen = control.reduce((sum, { independent }) => sum + independent, 0);
  const isAsked = relativeMax !== undefined && seen >= CONTROL_SLICES_MIN;
  const asked = isAsked ? control.map((one) => measuredOf(guardrail, one)) : [];
  const known = asked.filter((one) => one.samples >= samplesMin && one.value > 0);
  const worse = known.length === 0 ? NaN : Math.max(...known.map((one) => one.atMost));
  const relative = relativeMax !== undefined && worse > 0 ? relativeMax * worse : Infinity;
  const limit = Math.min(absoluteMax ?? Infinity, relative);
  const crossed = samples >= samplesMin && low > limit;
  return { arm, guardrail, value, low, control: worse, limit: limit === Infinity ? NaN : limit, samples, crossed };
}

interface Measured {
  readonly samples: number;
  /** NaN without samples. */
  readonly value: number;
  /** Its lower end, at every look together. */
  readonly atLeast: (evidence: number) => number;
  /** Its upper end, by its standard error. */
  readonly atMost: number;
}

/** What a guardrail's figure is of some requests. */
export function measuredOf({ figure, overdueMicros = OVERDUE_MICROS }: Guardrail, requests: GuardedRequests): Measured {
  const { ended, open, independent } = requests;
  const { failed, refused, requests: count } = ended.counts;
  if (figure === "error-rate") return shareOf(failed, count, independent);
  if (figure === "refused-rate") return shareOf(refused, count, independent);
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
  return { samples: times.count, value: times.figure(of), atLeast, atMost: times.atMost(of, values) };
}

function shareOf(some: number, all: number, independent: number): Measured {
  const count = Math.min(all, independent);
  const share = some / all;
  const atLeast = (evidence: number) => (all === 0 ? NaN : shareAtLeast(count, share, evidence));
  return { samples: all, value: share, atLeast, atMost: share + UPPER * Math.sqrt((share * (1 - share)) / count) };
}
