import type { DesignStudy, FigureStudy } from "./design-study.ts";
import type { PlannedFigureKey } from "../job/rollout-sample.ts";

export interface Recommendation {
  readonly design: string;
  readonly hours: number | undefined;
  /** "" where nothing speaks against it. */
  readonly warning: string;
}

/** Of a recommendation that is none. */
export const NOTHING_KNOWN = "no design can show it on this traffic: a longer trace, or more of it, may";

/** Times that take hardly longer than the shortest. */
const NEAR = 1.25;
/** A bias below that part of the truth is no reason against a design. */
const BIAS_SHARE = 0.2;
/** Errors of a bias, beyond which it is not chance. */
const BIAS_ERRORS = 2;
/** Tenants below which a split by them compares a few large ones. */
const TENANTS_MIN = 30;
/** A difference below that part of the control's figure is none, and biases are measured against it. */
const DIFFERENCE_SHARE = 0.01;

/**
 * Whether what a design shows is not the truth, beyond what the simulation leaves to chance. Of so few values that this is not
 * known it is neither called biased nor recommended.
 */
export function isBiased(study: DesignStudy, key: PlannedFigureKey, controlMicros: number): boolean {
  const { truth, bias, biasError } = study.figures[key];
  if (biasError === undefined) return false;
  // What is not a number is not known to be right.
  if (![truth, bias, biasError].every(Number.isFinite)) return true;
  const allowed = Math.max(BIAS_SHARE * Math.abs(truth), DIFFERENCE_SHARE * controlMicros);
  return Math.abs(bias) - BIAS_ERRORS * biasError > allowed;
}

/** Whether a rollout of the design can show anything: two pools are two values, and few tenants as few. */
function isKnowable({ design, figures }: DesignStudy): boolean {
  if (design.kind === "pools") return false;
  const byTenant = "by" in design && design.by === "tenant";
  return !byTenant || figures["e2e.mean"].clusters >= TENANTS_MIN;
}

function isFinite({ estimate, bias, biasError }: FigureStudy): boolean {
  return [estimate, bias, biasError].every(Number.isFinite);
}

/** Means that a design must show as they are: one that is wrong about TPOT is right about E2E by chance. */
const MEANS: readonly PlannedFigureKey[] = ["ttft.mean", "tpot.mean", "e2e.mean"];

/**
 * The design that takes the least time of those that show the truth, in the figure that is asked about and in every mean;
 * of two that take about as long the one with the smaller bias. Where all are biased, the one with the smallest bias; where
 * none is done in time, the one that comes nearest.
 */
export function recommended(
  studies: readonly DesignStudy[],
  key: PlannedFigureKey,
  controlMicros: (key: PlannedFigureKey) => number,
): Recommendation {
  const of = (study: DesignStudy) => study.figures[key];
  const known = studies.filter((study) => isKnowable(study) && isFinite(of(study)));
  const [first] = studies;
  if (known.length === 0) {
    return { design: first!.name, hours: undefined, warning: NOTHING_KNOWN };
  }
  const sound = known.filter((study) => [key, ...MEANS].every((one) => !isBiased(study, one, controlMicros(one))));
  const least = (all: readonly DesignStudy[], value: (study: DesignStudy) => number) =>
    all.reduce((best, study) => (value(study) < value(best) ? study : best));
  if (sound.length === 0) {
    const { name, figures } = least(known, (study) => Math.abs(of(study).bias));
    const every = known.length === studies.length ? "every design" : "every design whose bias is known";
    return { design: name, hours: figures[key].hours, warning: `${every} is biased here; this one is the least` };
  }
  const timed = sound.filter((study) => of(study).hours !== undefined);
  if (timed.length === 0) {
    const { name } = least(sound, (study) => of(study).detectable[0] ?? Infinity);
    return { design: name, hours: undefined, warning: "no design finds a difference as small within two months" };
  }
  const hoursOf = (study: DesignStudy) => of(study).hours!;
  const shortest = hoursOf(least(timed, hoursOf));
  const near = timed.filter((study) => hoursOf(study) <= NEAR * shortest);
  const { name, figures } = least(near, (study) => Math.abs(of(study).bias));
  return { design: name, hours: figures[key].hours, warning: "" };
}
