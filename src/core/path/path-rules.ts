import type { CheckRules } from "../endpoint/check-judge.ts";
import { HANG_DEFAULTS, type HangOptions } from "../endpoint/hang-judge.ts";
import type { ReturnPauses } from "../endpoint/lost-judge.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import type { StageSettings } from "./stage-kind.ts";
import type { WaitLimits } from "./wait-verdict.ts";

/** What a host does about faults: how often a request is tried, how long it is waited for, and when an endpoint is left. */
export interface PathRules {
  /** What is set of retries and stages; what is not has its usual value. */
  readonly settings: StageSettings;
  readonly waits: WaitLimits;
  readonly hang: HangOptions;
  /** Requests that an endpoint let back serves one after the other before it is taken for well. */
  readonly servedUntilWell: number;
  /** A server to which no connection could be made for this long is lost. */
  readonly lostAfterMicros: Micros;
  /** Between questions to a server that is not ready. */
  readonly returns: ReturnPauses;
  /** A metrics page or a health check that takes longer is not answered. */
  readonly probeMicrosMax: Micros;
  /** Active health checks; none where it is left out. */
  readonly check?: CheckRules;
  /** Between two looks at all that waits. */
  readonly sweepMicros: Micros;
}

const MINUTE = 60 * MICROS_PER_SECOND;

/** What the gateway does unless it is configured otherwise, and a simulation unless it is given other rules. */
export const PATH_RULES: PathRules = {
  settings: {},
  waits: {
    totalMicrosMax: 60 * MINUTE,
    firstByteMicrosMax: 10 * MINUTE,
    idleMicrosMax: 2 * MINUTE,
    lostMicrosMax: 5 * MICROS_PER_SECOND,
    cutMicrosMax: 30 * MICROS_PER_SECOND,
    continueMicrosMax: MICROS_PER_SECOND,
    moveAgainMicros: 5 * MICROS_PER_SECOND,
    writeStallMicrosMax: 2 * MINUTE,
  },
  hang: HANG_DEFAULTS,
  servedUntilWell: 8,
  lostAfterMicros: 5 * MICROS_PER_SECOND,
  returns: { retryMicros: 250 * MICROS_PER_MILLI, retryMicrosMax: 5 * MICROS_PER_SECOND },
  probeMicrosMax: 2 * MICROS_PER_SECOND,
  sweepMicros: 250 * MICROS_PER_MILLI,
};
