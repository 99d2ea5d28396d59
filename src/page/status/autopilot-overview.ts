/** What the shadow proposes; null where no better policy is searched. */
export interface AutopilotCard {
  /** Whether a rollout may start without a person. */
  readonly startsAlone: boolean;
  /** What the latest search came to; "" before the first. */
  readonly latest: string;
  /** Searches, all outcomes together. */
  readonly searches: number;
  /** Newest first. Gains are parts, as 0.1 for a tenth. */
  readonly proposals: readonly {
    readonly name: string;
    readonly at: number;
    readonly state: string;
    readonly by: string;
    readonly detail: string;
    readonly inForce: string;
    readonly objective: string;
    readonly gain: number;
    readonly gainLow: number;
    readonly gainHigh: number;
  }[];
}
