import type { TimeFigures } from "./time-figures.ts";
import type { AutopilotCard } from "./autopilot-overview.ts";
import type { WhyCard } from "./why-card.ts";
import type { RolloutArm } from "./rollout-arm.ts";

/** What the status page reads: plain JSON, times in milliseconds since 1970 unless their name ends otherwise. */
export interface Overview {
  readonly at: number;
  readonly gateway: GatewayCard;
  /** In order of id. */
  readonly endpoints: readonly EndpointCard[];
  readonly traffic: TrafficCard;
  /** Those after the sequence that was asked for, newest first. */
  readonly decisions: readonly DecisionLine[];
  readonly policy: PolicyCard;
  /** Null where no shadow runs. */
  readonly shadow: ShadowCard | null;
  readonly rollouts: readonly RolloutCard[];
  readonly autopilot: AutopilotCard | null;
}

export interface GatewayCard {
  readonly version: string;
  readonly startedAt: number;
  /** Sentences; empty where it is ready. */
  readonly waitsFor: readonly string[];
  readonly requestsInFlight: number;
  /** That wait at the gateway for their turn. */
  readonly requestsQueued: number;
  readonly process: ProcessFigures;
}

/** What the gateway's process takes, since somebody looked last. */
export interface ProcessFigures {
  /** Of one core; above 1 where other threads work too. */
  readonly cpu: number;
  /** Longest time for which its event loop was held. */
  readonly loopHeldMillis: number;
  readonly memoryBytes: number;
}

/** An endpoint's own requests of the last minute. */
export interface EndpointTraffic {
  readonly requests: number;
  /** That failed there, whether or not another endpoint answered then. */
  readonly failedAttempts: number;
  /** Median of streams; null where there was none. */
  readonly ttftMillis: number | null;
  /** Share of prompt tokens that were expected in its cache, of requests whose cached tokens it reported. */
  readonly expectedHitRatio: number | null;
  /** Share that was there. */
  readonly hitRatio: number | null;
}

export interface EndpointCard {
  readonly id: string;
  readonly state: "waiting" | "ready" | "lost";
  readonly detail: string;
  readonly models: readonly string[];
  /** Models beyond those named. */
  readonly modelsMore: number;
  readonly scrapeError: string;
  /** Null where the router does not know it. */
  readonly known: KnownEndpoint | null;
  /** Null where it had no request. */
  readonly lastMinute: EndpointTraffic | null;
}

export interface KnownEndpoint {
  readonly cordoned: boolean;
  readonly breaker: "closed" | "half-open" | "open";
  readonly standing: "well" | "returning" | "hung";
  /** Why it is left alone; "" where it is not. */
  readonly ejected: "" | "asleep" | "unhealthy" | "failures" | "slow";
  /** Of the requests that it would get, in (0, 1]; below 1 while it starts slowly. */
  readonly share: number;
  readonly freshness: "fresh" | "stale" | "unknown";
  /** Of the scraped signals; null before the first. */
  readonly ageMillis: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  readonly inFlight: number;
  /** Requests that occupy it, those of others included. */
  readonly load: number;
  readonly prefillTokensQueued: number;
  readonly decodeTokens: number;
  /** In [0, 1]. */
  readonly kvUtilization: number;
  readonly kvCapacityTokens: number | null;
  readonly hitRatio: number | null;
  readonly indexBlocks: number;
  readonly ttftMillis: number | null;
  readonly tpotMillis: number | null;
}

export interface TrafficCard {
  readonly slotMillis: number;
  /** Slots that are remembered. */
  readonly slotsMax: number;
  /** Those after the slot that was asked for, oldest first; the last one is still being filled. */
  readonly slots: readonly TrafficSlot[];
  /** Over the last minute or so; the process may be younger. */
  readonly lastMinute: RecentTrafficFigures & { readonly seconds: number };
  /** The same of each model, the busiest first; bounded. */
  readonly models: readonly (RecentTrafficFigures & { readonly model: string })[];
}

export interface TrafficSlot extends RecentTrafficFigures {
  /** Start of it, over its length: counts slots since 1970. */
  readonly slot: number;
}

/** Times in milliseconds; null where there was nothing to measure. */
export interface RecentTrafficFigures {
  readonly requests: number;
  /** Answers that an endpoint broke or that ran out of time. */
  readonly failed: number;
  /** Turned down by the gateway or an engine. */
  readonly refused: number;
  /** Whose client left. */
  readonly aborted: number;
  readonly outputTokens: number;
  /** Share of prompt tokens that engines had cached, where they report it. */
  readonly hitRatio: number | null;
  readonly ttft: TimeFigures | null;
  readonly tpot: TimeFigures | null;
  readonly e2e: TimeFigures | null;
}

export interface DecisionLine {
  readonly at: number;
  readonly sequence: number;
  readonly requestId: string;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Null for a retry, whose first decision has it. */
  readonly model: string | null;
  readonly kind: "routed" | "rejected" | "queued";
  /** Null unless it was routed. */
  readonly endpoint: string | null;
  readonly why: string;
  /** What came of it, as far as it is known; "" for nothing yet. */
  readonly came: string;
  /** Nothing more will be known of it. */
  readonly isOver: boolean;
  /** Of the rollout that it is part of; "" where there is none. */
  readonly arm: string;
  readonly profile: string;
  readonly policyVersion: number;
  readonly promptTokens: number | null;
  readonly hitTokens: number | null;
  readonly decisionMicros: number;
  readonly usedLedger: boolean;
}

/** What a decision was made of, as it is asked for by its sequence. */
export interface DecisionDetail {
  readonly endpoint: string | null;
  readonly scorers: readonly { readonly name: string; readonly weight: number }[];
  readonly candidates: readonly CandidateLine[];
}

export interface CandidateLine {
  readonly endpoint: string;
  /** Filter that removed it, "" if none did. */
  readonly removedBy: string;
  readonly scores: Readonly<Record<string, number | null>>;
  readonly total: number | null;
  readonly hitTokens: number;
  readonly effectiveLoad: number;
  readonly kvUtilization: number;
  readonly prefillTokensQueued: number;
  readonly freshness: string;
  readonly loadAgeMillis: number | null;
}

export interface PolicyCard {
  readonly version: number;
  readonly defaultProfile: string;
  readonly profiles: readonly string[];
  /** Versions and refused changes, newest first. */
  readonly changes: readonly PolicyChangeLine[];
}

export interface PolicyChangeLine {
  readonly at: number;
  /** Undefined where it was refused. */
  readonly version?: number;
  readonly source: string;
  readonly by: string;
  /** What it made, or why it was not made. */
  readonly detail: string;
}

export interface ShadowCard {
  readonly state: "starting" | "running" | "crashed" | "off";
  readonly detail: string;
  readonly decisions: number;
  readonly differences: number;
  readonly engine: "configured" | "fitted";
  /** Null before the first evaluation. */
  readonly evaluation: ShadowEvaluationCard | null;
  /** Null before the first explanation; absent where there is to be none. */
  readonly why?: WhyCard | null;
}

export interface ShadowEvaluationCard {
  readonly inForce: string;
  readonly requests: number;
  readonly replicas: number;
  readonly withoutIntervals: string;
  /** What was measured of the profile in force over the same requests, mean seconds by metric. */
  readonly measuredSeconds: Readonly<Record<string, number>>;
  readonly candidates: readonly ShadowCandidateCard[];
}

export interface ShadowCandidateCard {
  readonly name: string;
  readonly hitRatio: number;
  /** By metric. */
  readonly predicted: Readonly<Record<string, ShadowPrediction>>;
}

/** Seconds. */
export interface ShadowPrediction {
  readonly mean: number;
  /** Where 90 % of what may come lies; absent without replicas. */
  readonly low?: number;
  readonly high?: number;
  /** Candidate less profile in force; absent for that one itself. */
  readonly difference?: number;
  readonly exceedsNoise?: boolean;
}

export type RolloutPhase = "planned" | "running" | "paused" | "promoted" | "rolled-back";
export type RolloutMetric = "ttft" | "tpot" | "e2e";

export interface RolloutCard {
  readonly name: string;
  /** "" for all models. */
  readonly model: string;
  readonly phase: RolloutPhase;
  /** The design with its windows, in a sentence. */
  readonly design: string;
  /** Of the last step, and why it was made. */
  readonly at: number;
  readonly reason: string;
  /** What it has found so far and what follows, in a sentence, and how much of what is planned was compared. */
  readonly verdict: {
    readonly text: string;
    readonly advice: "roll back" | "promote" | "wait" | "none";
    readonly done: number;
    readonly planned: number;
    readonly unit: string;
  };
  /** What makes the comparison worthless, a line each; empty where nothing does. */
  readonly health: readonly string[];
  /** Whose requests are judged, and by whom; "" where there is one gateway. */
  readonly scope: string;
  /** After a rollback: until when no rollout of the model starts. */
  readonly cooldownEndsAt: number | null;
  /** The window under way; null while it does not run. */
  readonly window: RolloutWindow | null;
  readonly arms: readonly RolloutArm[];
  /** Arms but the control, by metric, over time: oldest first. */
  readonly intervals: readonly RolloutInterval[];
  /** Every arm by itself, by metric. */
  readonly windows: readonly RolloutWindows[];
  readonly guardrails: readonly RolloutGuardrail[];
  /** Oldest first. */
  readonly steps: readonly RolloutStepLine[];
}

export interface RolloutWindow {
  readonly number: number;
  readonly endsAt: number;
  /** That the whole fleet is on; "" where arms run side by side. */
  readonly arm: string;
  /** What arrives now is not counted. */
  readonly isWashout: boolean;
}

/** An arm's mean less the control's, milliseconds; null where there is not enough yet. */
export interface RolloutInterval {
  readonly arm: string;
  readonly metric: RolloutMetric;
  /** Where the simulator expects it, and what the measurement makes of that. */
  readonly predicted?: {
    readonly low: number;
    readonly high: number;
    readonly verdict: "open" | "agrees" | "contradicted";
  };
  readonly points: readonly RolloutPoint[];
}

/** What each arm did, window by window: the mean, and from p50 (`low`) to p90 (`high`). Milliseconds. */
export interface RolloutWindows {
  readonly metric: RolloutMetric;
  readonly arms: readonly { readonly name: string; readonly points: readonly RolloutPoint[] }[];
}

export interface RolloutPoint {
  readonly at: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export interface RolloutGuardrail {
  readonly figure: string;
  readonly arm: string;
  /** In words: "at most 2 times the control's". */
  readonly limit: string;
  /** The arm's figure over its limit: above 1 it is crossed; null without samples enough. */
  readonly used: number | null;
  readonly value: string;
}

export interface RolloutStepLine {
  readonly at: number;
  readonly step: string;
  readonly by: string;
  readonly reason: string;
}
