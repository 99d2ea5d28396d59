/** How the shadow beside the gateway stands, for metrics and /gnomon/shadow. Plain data. */
export interface ShadowStatus {
  /** starting: no report yet; running; crashed: waits before it is started again; off: given up. */
  readonly state: "starting" | "running" | "crashed" | "off";
  readonly detail: string;
  readonly restarts: number;
  /** Records that did not fit its buffer. */
  readonly dropped: number;
  readonly bufferedBytes: number;
  /** Age of the oldest lines that it has not worked through. */
  readonly lagMillis: number;
  readonly parity: { readonly decisions: number; readonly differences: number; readonly unverifiable: number };
  readonly evaluation: ShadowEvaluation | undefined;
}

export interface ShadowEvaluation {
  readonly inForce: string;
  readonly requests: number;
  readonly millis: number;
  /** predicted / observed mean - 1 of the profile in force, by metric; a metric is left out where nothing was observed. */
  readonly modelError: Readonly<Record<string, number>>;
  readonly candidates: readonly {
    readonly name: string;
    readonly hitRatio: number;
    /** Simulated means in seconds, by metric. */
    readonly predictedSeconds: Readonly<Record<string, number>>;
    /** Candidate less profile in force, both simulated, with its 95 % interval; seconds, by metric. */
    readonly differenceSeconds: Readonly<
      Record<string, { readonly mean: number; readonly low: number; readonly high: number }>
    >;
  }[];
}
