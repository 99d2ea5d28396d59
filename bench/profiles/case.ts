import type { Micros } from "#core/base/units.ts";

export const WORKLOADS = ["mooncake", "weka", "azure", "lmcache", "chatbot", "documents"] as const;
export const LOADS = ["moderate", "high"] as const;

export type WorkloadName = (typeof WORKLOADS)[number];
export type LoadName = (typeof LOADS)[number];

/** A workload at a load for eight engines. */
export interface Case {
  readonly workload: WorkloadName;
  readonly load: LoadName;
  /** In the folder of traces, or in config/workloads for a generated one. */
  readonly path: string;
  /** First turns come so many times as fast as recorded. */
  readonly rateScale: number;
  /** Times that all sessions come, each time with text of their own but for the common system prompt. */
  readonly copies: number;
  /** Starts of sessions, where the workload has no clock for them. */
  readonly sessionsPerSecond: number;
  /** How a workload falls into two halves: by time, session by session, or as two draws of a generator. */
  readonly halves: "time" | "sessions" | "draws";
}

/** Engines that the rates below are meant for; another number of engines scales the rate. */
export const ENGINES_DEFAULT = 8;

/** Requests that come by the trace's own clock. */
const TIMED = { copies: 1, sessionsPerSecond: 1, halves: "time" } as const;
const MOONCAKE = { ...TIMED, workload: "mooncake", path: "mooncake/conversation_trace.jsonl" } as const;
const WEKA = { workload: "weka", path: "weka", rateScale: 1, copies: 4, halves: "sessions" } as const;
const AZURE = { ...TIMED, workload: "azure", path: "azure/AzureLLMInferenceTrace_code.csv" } as const;
const LMCACHE = { workload: "lmcache", path: "lmcache", rateScale: 1, copies: 40, halves: "sessions" } as const;
const CHATBOT = { ...TIMED, workload: "chatbot", path: "chatbot.yaml", halves: "draws" } as const;
const DOCUMENTS = { ...TIMED, workload: "documents", path: "documents.yaml", halves: "draws" } as const;

export const CASES: readonly Case[] = [
  { ...MOONCAKE, load: "moderate", rateScale: 3 },
  { ...MOONCAKE, load: "high", rateScale: 4.5 },
  { ...WEKA, load: "moderate", sessionsPerSecond: 0.1 },
  { ...WEKA, load: "high", sessionsPerSecond: 0.25 },
  { ...AZURE, load: "moderate", rateScale: 15 },
  { ...AZURE, load: "high", rateScale: 25 },
  { ...LMCACHE, load: "moderate", sessionsPerSecond: 8 },
  { ...LMCACHE, load: "high", sessionsPerSecond: 14 },
  { ...CHATBOT, load: "moderate", rateScale: 4 },
  { ...CHATBOT, load: "high", rateScale: 6 },
  { ...DOCUMENTS, load: "moderate", rateScale: 2 },
  { ...DOCUMENTS, load: "high", rateScale: 3 },
];

/** What is done to every case alike. */
export interface Study {
  readonly seed: number;
  /** Most requests of one copy. */
  readonly requestsMax: number;
  /** Half of the workload that is used. */
  readonly half: "all" | "first" | "second";
  readonly engines: number;
  /**
   * even: all H100. mixed: every second one an A100. sizes: every second one with a quarter of the cache and of the
   * batch.
   */
  readonly fleet: "even" | "mixed" | "sizes";
  /** Between two scrapes of an engine; "own": as the router that a profile comes from has it. */
  readonly scrapeMicros: Micros | "own";
}

/** A scrape older than so many intervals is stale. */
export const STALE_AFTER_INTERVALS = 3;
