import type { ArmTally } from "./arm-tally.ts";
import type { TimeFigure, TimeMetric } from "./outcome.ts";

/** What a guardrail watches: a time in microseconds, or a share of requests in [0, 1]. */
export type GuardedFigure = `${TimeMetric}.${TimeFigure}` | "error-rate" | "refused-rate";

/** A limit that takes an arm back as soon as it is crossed, whatever the comparison shows so far. */
export interface Guardrail {
  readonly figure: GuardedFigure;
  /** The arm's figure may be at most this. */
  readonly absoluteMax?: number;
  /** It may be at most this multiple of the control's; has no effect while the control's is 0. */
  readonly relativeMax?: number;
  /** Fewer samples of the arm, or of the control where it is compared with it, decide nothing. */
  readonly samplesMin: number;
}

export interface Crossing {
  readonly arm: number;
  readonly guardrail: Guardrail;
  readonly value: number;
  /** The control's; NaN where it was not asked. */
  readonly control: number;
}

/** Whether an arm's latest window is beyond a limit; `control` is the control's latest one. */
export function crossing(
  guardrail: Guardrail,
  arm: number,
  tally: ArmTally,
  control: ArmTally | undefined,
): Crossing | undefined {
  const { figure, absoluteMax, relativeMax, samplesMin } = guardrail;
  if (samplesOf(figure, tally) < samplesMin) return undefined;
  const value = valueOf(figure, tally);
  if (absoluteMax !== undefined && value > absoluteMax) return { arm, guardrail, value, control: NaN };
  if (relativeMax === undefined || control === undefined || samplesOf(figure, control) < samplesMin) return undefined;
  const limit = relativeMax * valueOf(figure, control);
  return limit > 0 && value > limit ? { arm, guardrail, value, control: valueOf(figure, control) } : undefined;
}

function samplesOf(figure: GuardedFigure, tally: ArmTally): number {
  const time = timeOf(figure);
  return time === undefined ? tally.counts.requests : tally.samples(time.metric);
}

function valueOf(figure: GuardedFigure, tally: ArmTally): number {
  if (figure === "error-rate") return tally.errorRate;
  if (figure === "refused-rate") return tally.refusedRate;
  const { metric, of } = timeOf(figure)!;
  return tally.time(metric, of);
}

function timeOf(figure: GuardedFigure): { readonly metric: TimeMetric; readonly of: TimeFigure } | undefined {
  if (figure === "error-rate" || figure === "refused-rate") return undefined;
  const [metric, of] = figure.split(".") as [TimeMetric, TimeFigure];
  return { metric, of };
}
