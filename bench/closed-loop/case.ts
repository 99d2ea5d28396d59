/** A workload at a load, before a fleet of emulated engines. */
export interface ClosedLoopCase {
  readonly workload: "mooncake" | "weka";
  readonly load: "moderate" | "high";
  /** Beneath the folder of traces. */
  readonly path: string;
  readonly engines: number;
  /** By name, or the path of an engine file. */
  readonly engine: string;
  /** Requests sent at most; a run lasts about a minute. */
  readonly requests: number;
  /** First turns come so many times as fast as recorded. */
  readonly rateScale: number;
  /** Factor on prompts and on what their blocks stand for, and on answers. */
  readonly tokenScale: number;
  readonly outputScale: number;
  /** Longer prompts keep their beginning. */
  readonly inputTokensMax: number;
  readonly outputTokensMax: number;
  /** Sessions only: turns of each, times that all come, their starts a second, and the cap on think times. */
  readonly turns: number;
  readonly copies: number;
  readonly sessionsPerSecond: number;
  readonly thinkSecondsMax: number;
  /** Sessions only: all copies of the first half of them come before those of the other half, as many requests of each. */
  readonly inHalves?: boolean;
}

const FLEET = { engines: 8, engine: "h100-llama-3.1-8b" } as const;

const MOONCAKE = {
  ...FLEET,
  workload: "mooncake",
  path: "mooncake/conversation_trace.jsonl",
  tokenScale: 0.5,
  outputScale: 0.2,
  inputTokensMax: 16_000,
  outputTokensMax: 400,
  turns: Infinity,
  copies: 1,
  sessionsPerSecond: 1,
  thinkSecondsMax: Infinity,
} as const;

const WEKA = {
  ...FLEET,
  workload: "weka",
  path: "weka",
  rateScale: 1,
  tokenScale: 0.2,
  outputScale: 0.2,
  inputTokensMax: 60_000,
  outputTokensMax: 400,
  turns: 6,
  copies: 12,
  thinkSecondsMax: 5,
} as const;

export const CASES: readonly ClosedLoopCase[] = [
  { ...MOONCAKE, load: "moderate", requests: 2_400, rateScale: 10 },
  { ...MOONCAKE, load: "high", requests: 3_600, rateScale: 16 },
  { ...WEKA, load: "moderate", requests: 1_600, sessionsPerSecond: 4 },
  { ...WEKA, load: "high", requests: 2_300, sessionsPerSecond: 5.5 },
];

/** The profiles that run where none are named: at least one of each kind of policy. */
export const PROFILES: readonly string[] = [
  "gnomon",
  "gnomon-weighted",
  "lmetric",
  "llm-d",
  "smg-cache-aware",
  "aibrix-prefix-cache",
  "least-loaded",
  "round-robin",
];
