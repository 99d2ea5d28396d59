import type { DistributionSummary } from "./distribution-summary.ts";
import type { HitEstimate } from "./hit-estimate.ts";
import type { LoadImbalance } from "./imbalance.ts";

/** What a run measured; the JSON that `--json` writes. */
export interface DriveReport {
  readonly urls: readonly string[];
  readonly model: string;
  readonly api: "completions" | "chat";
  readonly stream: boolean;
  readonly seed: number;
  readonly workload: WorkloadReport;
  /** From the first sending to the last end. */
  readonly seconds: number;
  /** SIGINT ended it early. */
  readonly interrupted: boolean;
  readonly requests: RequestCounts;
  /** By outcome, `ok` included. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** The first message of each kind of failure, of prompts that this driver made up. */
  readonly failureMessages: Readonly<Record<string, string>>;
  /** Of requests that ended ok. */
  readonly throughput: {
    readonly requestsPerSecond: number;
    readonly promptTokensPerSecond: number;
    readonly outputTokensPerSecond: number;
  };
  /** Sending to the first chunk with content; streams only. */
  readonly ttftMillis: DistributionSummary;
  /** First to last token over the tokens in between; streams of two tokens and more. */
  readonly tpotMillis: DistributionSummary;
  readonly e2eMillis: DistributionSummary;
  /** As the engines counted them, over requests that reported it. */
  readonly tokens: { readonly prompt: number; readonly cached: number; readonly output: number };
  readonly outputsShorterThanAsked: number;
  /** Cached over all prompt tokens: as engines report, and as the gateway expected. Null where nobody reported it. */
  readonly hitRatio: { readonly engine: number | null; readonly gateway: number | null };
  /** The gateway's expectation against what the engines found; null where no request has both. */
  readonly hitEstimate: HitEstimate | null;
  readonly endpoints: readonly EndpointReport[];
  readonly imbalance: LoadImbalance;
  readonly drift: DriftReport;
  readonly driver: {
    readonly cpuSeconds: number;
    readonly cpuMicrosPerRequest: number;
    readonly eventLoopDelayMillisP99: number;
    /** Requests beyond the number whose figures are kept. */
    readonly samplesDropped: number;
  };
}

interface WorkloadReport {
  readonly path: string;
  readonly format: string;
  /** Records read before the run was over, and what became of them. */
  readonly records: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly adjusted: Readonly<Record<string, number>>;
  readonly refusedPlaces: readonly string[];
  readonly promptsTruncated: number;
  readonly promptsSkipped: number;
  readonly outputsCut: number;
  readonly thinkTimesCut: number;
}

interface RequestCounts {
  readonly sent: number;
  readonly ok: number;
  /** Failures that `expect` does not name. */
  readonly failed: number;
  readonly expectedFailures: number;
  /** Closed on purpose. */
  readonly aborted: number;
  /** In flight when the run was over. */
  readonly cancelled: number;
  /** Read and due, or waiting for an earlier turn, when the run was over. */
  readonly notSent: number;
}

export interface EndpointReport {
  /** "(not reported)" for requests that ended before the gateway reported it. */
  readonly endpoint: string;
  readonly requests: number;
  readonly share: number;
  readonly failed: number;
  readonly ttftMillisMean: number | null;
  readonly e2eMillisMean: number | null;
  readonly hitRatio: number | null;
}

/** How late requests were sent, against their due time. */
export interface DriftReport {
  readonly millis: DistributionSummary;
  /** Sent late because `concurrency` requests were in flight. */
  readonly heldByConcurrency: number;
  /** Conversations that began late because enough others were under way; they are due when they may begin. */
  readonly sessionsHeld: number;
  /** The figures are those of a slower workload than the one asked for. */
  readonly behind: boolean;
}
