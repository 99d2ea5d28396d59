import type { TimeFigures } from "./time-figures.ts";

/** What an arm of a rollout did, as the status page shows it; null is what is not known. */
export interface RolloutArm {
  readonly name: string;
  readonly profile: string;
  /** Share or pool that it has now; "" where the design gives all in turn. */
  readonly share: string;
  readonly requests: number;
  readonly failed: number;
  readonly refused: number;
  readonly hitRatio: number | null;
  /** Of the requests that are promised times, those that got them. */
  readonly goodput: number | null;
  /** Requests of the busiest endpoint over the mean of those that had any. */
  readonly imbalance: number | null;
  readonly ttft: TimeFigures | null;
  readonly tpot: TimeFigures | null;
  readonly e2e: TimeFigures | null;
}
