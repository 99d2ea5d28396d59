import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { Design, SplitKey } from "#core/rollout/plan/rollout-plan.ts";

/** A design under a name that people read. */
export interface NamedDesign {
  readonly name: string;
  readonly design: Design;
  /** Comparisons that share the level: a canary has one in each of its steps. */
  readonly stages: number;
}

/** Label that marks the endpoints of a pool, and its values by arm. */
export const POOL_LABEL = "gnomon-pool";
export const POOLS: readonly string[] = ["control", "other"];

/** Part of a switchback's window that is left out. */
const WASHOUT_SHARE = 0.2;
/** Windows that a switchback is asked about with, in seconds. */
const WINDOW_SECONDS: readonly number[] = [10, 20, 30, 60, 120, 300, 600, 900, 1800];
/** A trace with fewer windows of a length shows little of it. */
const WINDOWS_MIN = 8;
/** Fewer requests in a window have no p99. */
const WINDOW_REQUESTS_MIN = 40;
/** Lengths of windows at most. */
const LENGTHS_MAX = 3;
/** Shares of a canary that are asked about, in percent: its steps of which the control still has more than a half. */
const CANARY_SHARES: readonly number[] = [5, 25];

export interface DesignQuestion {
  readonly spanMicros: Micros;
  readonly requests: number;
  readonly endpoints: number;
  /** Whether any request has a session or may have one inferred; whether tenants differ. */
  readonly hasSessions: boolean;
  readonly hasTenants: boolean;
  /** Steps of a canary, in percent. */
  readonly canarySteps: readonly number[];
  /** Lengths of windows; chosen by the trace's length where there are none. */
  readonly windowMicros?: readonly Micros[];
}

/** Lengths of windows that so much traffic allows, longest first; where it allows none, an eighth of it. */
export function windowLengths({ spanMicros, requests }: Pick<DesignQuestion, "spanMicros" | "requests">): Micros[] {
  const fits = WINDOW_SECONDS.map((seconds) => seconds * MICROS_PER_SECOND).filter((window) => {
    return spanMicros / window >= WINDOWS_MIN && (requests * window) / spanMicros >= WINDOW_REQUESTS_MIN;
  });
  const chosen = fits.toReversed().slice(0, LENGTHS_MAX);
  return chosen.length > 0
    ? chosen
    : [Math.max(1, Math.floor(spanMicros / WINDOWS_MIN / MICROS_PER_SECOND)) * MICROS_PER_SECOND];
}

/** The designs that a plan compares. */
export function namedDesigns(question: DesignQuestion): NamedDesign[] {
  const lengths = question.windowMicros ?? windowLengths(question);
  const windowMicros = lengths[Math.floor(lengths.length / 2)]!;
  const switchbacks = lengths.map((length): NamedDesign => {
    const washoutMicros = Math.round(WASHOUT_SHARE * length);
    return {
      name: `switchback ${seconds(length)} s`,
      design: { kind: "switchback", windowMicros: length, washoutMicros },
      stages: 1,
    };
  });
  const keys: SplitKey[] = [
    ...(question.hasSessions ? ["session" as const] : []),
    ...(question.hasTenants ? ["tenant" as const] : []),
    "request",
  ];
  const [key] = keys as [SplitKey, ...SplitKey[]];
  const splits = keys.map((by): NamedDesign => ({
    name: `split by ${by}`,
    design: { kind: "split", windowMicros, by },
    stages: 1,
  }));
  const pools: NamedDesign = {
    name: "pools",
    design: { kind: "pools", windowMicros, by: key, label: POOL_LABEL },
    stages: 1,
  };
  const canaries = CANARY_SHARES.map((share): NamedDesign => ({
    name: `canary at ${share} %`,
    design: { kind: "canary", windowMicros, by: key, stepPercents: [share] },
    stages: question.canarySteps.length,
  }));
  return [...switchbacks, ...(question.endpoints >= 2 ? [pools] : []), ...splits, ...canaries];
}

function seconds(micros: Micros): string {
  return String(Math.round(micros / MICROS_PER_SECOND));
}
