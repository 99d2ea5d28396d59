import type { ArmFigures } from "./arm-figures.ts";
import { evidence, type MeanEstimate, priorFor } from "./confidence-sequence.ts";
import { TIME_METRICS, type TimeMetric } from "./outcome.ts";
import { shareEvidence } from "./share-bound.ts";

/** What makes a comparison worthless, whatever it shows. */
export interface Ailment {
  readonly kind: "dead-arm" | "sample-ratio" | "arrivals" | "carry-over" | "sparse";
  readonly arm: number;
  /** What is wrong, in words, without the arm's name. */
  readonly sentence: string;
}

/** Each check alone is wrong at any look as rarely; beside the level, since it pauses and finds nothing. */
const HEALTH_LEVEL = 0.001;
const NEEDED = Math.log(1 / HEALTH_LEVEL);
/** Blocks at which a trend is found soonest. */
const BLOCKS_PLANNED = 10;
/** Requests of other arms beside which none of an arm's is no chance. */
const BESIDE_NONE_MIN = 20;

/** Of what was drawn (sessions, tenants, requests), an arm's share that was answered. */
export interface DrawnShare {
  readonly arm: number;
  readonly share: number;
  readonly expected: number;
  readonly draws: number;
}

/** An arm that answers nothing, by the last windows that had every arm. */
export function deadArm(windows: readonly (readonly ArmFigures[])[]): Ailment | undefined {
  const [first] = windows;
  if (first === undefined) return undefined;
  const answered = first.map((_, arm) =>
    windows.reduce((sum, arms) => sum + arms[arm]!.requests - arms[arm]!.failed - arms[arm]!.refused, 0),
  );
  const arm = answered.indexOf(0);
  if (arm < 0 || !answered.some((count) => count >= BESIDE_NONE_MIN)) return undefined;
  const beside = Math.max(...answered);
  return { kind: "dead-arm", arm, sentence: `it answered nothing while another arm answered ${beside} requests` };
}

/** Windows with so few requests that none was compared; `windowSamplesMin` are needed of each arm. */
export function sparseWindows(
  windows: readonly (readonly ArmFigures[])[],
  arm: number,
  windowSamplesMin: number,
): Ailment | undefined {
  const requests = windows.reduce((sum, arms) => sum + arms[arm]!.requests, 0);
  const had = windows.filter((arms) => arms[arm]!.requests > 0).length;
  if (had === 0) return undefined;
  const each = Number((requests / had).toPrecision(2));
  const sentence = `its windows have ${each} requests each, and nothing is compared where fewer than ${windowSamplesMin} ended`;
  return { kind: "sparse", arm, sentence };
}

/**
 * An arm that has another share of the draws than it is to have: what is compared is not who was drawn. One that has none of
 * them answers nothing.
 */
export function sampleRatio({ arm, share, expected, draws }: DrawnShare): Ailment | undefined {
  if (!(draws > 0) || shareEvidence(draws, share, expected) < NEEDED) return undefined;
  if (share === 0) {
    const sentence = `it answered nothing where ${percent(expected)} of ${draws} were drawn to it`;
    return { kind: "dead-arm", arm, sentence };
  }
  const sentence = `it has ${percent(share)} of the ${draws} that were answered where ${percent(expected)} were drawn to it`;
  return { kind: "sample-ratio", arm, sentence };
}

/** A block's requests of an arm, less the control's, over both: who comes must not depend on the arm. */
export function arrivalsAilment(arm: number, estimate: MeanEstimate): Ailment | undefined {
  if (!isSure(estimate)) return undefined;
  const times = (1 + estimate.mean) / (1 - estimate.mean);
  return { kind: "arrivals", arm, sentence: `its windows have ${times.toFixed(2)} times the control's requests` };
}

/** An arm's time over the control's in the later half of a block's windows, over that in the earlier half: a logarithm. */
export function carryOver(
  arm: number,
  metric: TimeMetric,
  estimate: MeanEstimate,
  windowSeconds: number,
): Ailment | undefined {
  if (!isSure(estimate, HEALTH_LEVEL / TIME_METRICS.length)) return undefined;
  const share = percent(Math.abs(Math.expm1(estimate.mean)));
  const longer = `windows of ${Math.ceil(3 * windowSeconds)} s with a washout of ${Math.ceil(windowSeconds)} s would leave it out`;
  return {
    kind: "carry-over",
    arm,
    sentence: `its ${metric.toUpperCase()} beside the control's changes by ${share} within windows of ${windowSeconds} s, so that the arm before is still there: ${longer}`,
  };
}

function isSure(estimate: MeanEstimate, level = HEALTH_LEVEL): boolean {
  return evidence(estimate, priorFor(BLOCKS_PLANNED, level)) >= 1 / level;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
