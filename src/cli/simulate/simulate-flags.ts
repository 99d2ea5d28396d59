import type { SchedulerPolicy } from "#engine/config.ts";
import type { ArchitectureFlags } from "../flag/architecture-flags.ts";
import type { AutoscaleFlags } from "../flag/autoscale-flags.ts";
import type { LostEndpoint } from "../flag/lost-endpoint.ts";
import type { RouterFlags } from "../flag/router-flags.ts";
import type { SetFlags } from "./simulated-keys.ts";

/** Engines where nothing states how many. */
export const INSTANCES_DEFAULT = 4;

/** What was given to `simulate`, with defaults. Times as the flags' texts state. */
export interface SimulateFlags extends RouterFlags, AutoscaleFlags, ArchitectureFlags, SetFlags {
  readonly autoscalerEnabled: boolean;
  readonly autoscalerPolicy?: string;
  /** INSTANCES_DEFAULT where it is left out. */
  readonly numInstances?: number;
  readonly routers: number;
  readonly engine?: string;
  readonly lose: readonly LostEndpoint[];
  readonly modelConfig?: string;
  readonly hardware?: string;
  readonly enforceEager: boolean;
  readonly asyncScheduling: boolean;
  readonly model?: string;
  readonly tp: number;
  readonly gpuMemoryUtilization: number;
  readonly workload?: string;
  readonly workloadSpec?: string;
  readonly rate?: number;
  readonly rateScale: number;
  readonly numRequests?: number;
  readonly horizon?: number;
  readonly timeout?: number;
  readonly seed: number;
  readonly profile?: string;
  readonly policyConfig?: string;
  readonly routingPolicy?: string;
  readonly routingScorers?: string;
  readonly admissionPolicy?: string;
  readonly admissionBucketSize?: number;
  readonly priorityPolicy?: string;
  readonly scheduler?: SchedulerPolicy;
  readonly kvGpuBlocks?: number;
  readonly kvCpuBlocks?: number;
  readonly kvOffloadThreshold: number;
  readonly kvBlockBytes: number;
  readonly kvTransferBandwidth: number;
  readonly kvTransferBase: number;
  readonly slo?: string;
  readonly fitnessWeights?: string;
  readonly traceLevel: "none" | "decisions";
  readonly counterfactualK: number;
  readonly counterfactualDecisions?: number;
  readonly summarizeTrace: boolean;
  readonly signals: "scrape" | "at-decision" | "oracle";
  readonly scrapeInterval?: number;
  readonly scrapePhase: "spread" | "together";
  readonly scrapeDelay?: number;
  readonly scrapeLoss: number;
  readonly staleAfter?: number;
  readonly prefixIndex: "approximate" | "oracle" | "copies" | "events";
  readonly answers: "recorded" | "known";
  readonly cacheSignalDelay: number;
  readonly admissionLatency: number;
  readonly routingLatency: number;
  readonly requestLatency: number;
  readonly answerLatency: number;
  readonly tokenGaps: boolean;
  readonly check: boolean;
  readonly resultsPath?: string;
  readonly requestsPath?: string;
  readonly json: boolean;
}
