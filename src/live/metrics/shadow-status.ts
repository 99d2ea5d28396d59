import type { WhyCard } from "#page/status/why-card.ts";

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
  /** Processor time of its thread, all threads that it has had together. */
  readonly cpuSeconds: number;
  readonly calibration: ShadowCalibration;
  readonly evaluation: ShadowEvaluation | undefined;
  /** Null before the first explanation; absent where there is to be none. */
  readonly why?: WhyCard | null;
}

/** The engine model that evaluations use, and where it comes from. */
export interface ShadowCalibration {
  readonly mode: "continuous" | "off";
  /** The engine of the configuration, or a fit to the traffic. */
  readonly source: "configured" | "fitted";
  /** Since the fit in use was accepted. */
  readonly fitAgeSeconds: number | undefined;
  /** Attempts so far, by what came of them. */
  readonly fits: Readonly<Record<string, number>>;
  readonly latest: ShadowFit | undefined;
  readonly sizes: {
    readonly blockTokens: number;
    readonly kvBlocks: number;
    readonly sequencesMax: number;
    readonly batchTokensMax: number;
  };
  /** Microseconds by coefficient; none where the engine's step time is of another kind. */
  readonly coefficients: Readonly<Record<string, number>>;
  /** Their standard errors, as far as they were fitted. */
  readonly standardErrors: Readonly<Record<string, number>>;
  /** Error of the engine in use on the window's latest requests, which it was not fitted to; by metric. */
  readonly heldOut: Readonly<Record<string, ShadowError>>;
  readonly heldOutByEndpoint: Readonly<Record<string, Readonly<Record<string, ShadowError>>>>;
  /** Cached tokens, simulated over reported, less one, over the same requests; undefined where none were reported. */
  readonly cachedTokensError: number | undefined;
}

/** One attempt to fit the engine to the window. */
export interface ShadowFit {
  readonly outcome: string;
  /** Why it was kept or turned down, and which traffic would show more. */
  readonly detail: readonly string[];
  readonly requests: number;
  /** Requests whose times say nothing, by reason. */
  readonly left: Readonly<Record<string, number>>;
  readonly millis: number;
  readonly cpuMillis: number;
  /** What was turned down, on the same requests as heldOut. */
  readonly refused: Readonly<Record<string, ShadowError>>;
}

export interface ShadowError {
  readonly requests: number;
  readonly predictedSeconds: number;
  readonly observedSeconds: number;
  /** predicted / observed mean - 1 */
  readonly mean: number;
  /**
   * Mean of |predicted - observed| / observed, request by request; less than a tenth of the median observed counts as
   * that.
   */
  readonly mape: number;
}

export interface ShadowEvaluation {
  readonly inForce: string;
  readonly requests: number;
  readonly millis: number;
  readonly cpuMillis: number;
  /** predicted / observed mean - 1 of the profile in force, by metric; a metric is left out where nothing was observed. */
  readonly modelError: Readonly<Record<string, number>>;
  /** Mean of what was observed of the profile in force, over the same requests; seconds, by metric. */
  readonly measuredSeconds: Readonly<Record<string, number>>;
  /** Requests that the model's error leaves out, by reason. */
  readonly uncompared: Readonly<Record<string, number>>;
  /** Whether what was observed of the profile in force lies in its intervals, by metric; none without intervals. */
  readonly inside: Readonly<Record<string, ShadowFigures<boolean>>>;
  /** Simulations of each profile behind each interval, on engines drawn from what the fit leaves to chance; 0 for none. */
  readonly replicas: number;
  /** Why there are no intervals; "" where there are. */
  readonly withoutIntervals: string;
  /** Changes of the fleet that the window had no room for. */
  readonly fleetEventsMerged: number;
  readonly candidates: readonly ShadowCandidate[];
}

export type ShadowFigures<T> = Readonly<Record<"mean" | "p50" | "p99", T>>;

export interface ShadowCandidate {
  readonly name: string;
  readonly hitRatio: number;
  /** Simulated means in seconds, by metric. */
  readonly predictedSeconds: Readonly<Record<string, number>>;
  /** What the replicas expect and where 90 % of what may come lies; seconds, by metric. */
  readonly intervalSeconds: Readonly<Record<string, ShadowFigures<ShadowInterval & { readonly expected: number }>>>;
  /** Candidate less profile in force, both simulated, with its 95 % interval over requests; seconds, by metric. */
  readonly differenceSeconds: Readonly<Record<string, ShadowDifference>>;
}

export interface ShadowInterval {
  readonly low: number;
  readonly high: number;
}

export interface ShadowDifference extends ShadowInterval {
  readonly mean: number;
  /** 90 % prediction interval, both on the same drawn engines; left out without replicas. */
  readonly onOtherEngines?: ShadowInterval;
  /** Whether both intervals, as far as there are, leave out 0. */
  readonly exceedsNoise: boolean;
}
