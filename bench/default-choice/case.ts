import type { Case, Study } from "../profiles/case.ts";

/** What a half of a workload is used for: choosing a default, or judging the one that was chosen. */
export const HALVES = ["choosing", "held-out"] as const;
export type HalfName = (typeof HALVES)[number];

/** Traffic, fleet and signals that a default has to do well on. */
export interface ChoiceCase extends Pick<Case, "path" | "halves" | "rateScale" | "sessionsPerSecond"> {
  readonly name: string;
  readonly fleet: Study["fleet"];
  readonly engines: number;
  /** Between two scrapes of every engine; left out: as the router that a profile comes from has it. */
  readonly scrapeMillis?: number;
  /** Factors on prompts, with what their blocks stand for, and on answers. */
  readonly tokenScale: number;
  readonly outputScale: number;
  /** Longest pause of a session's client. */
  readonly thinkSecondsMax: number;
  /** Adapters that conversations are asked of in turn; prompts of two share no block. 0 for the model itself. */
  readonly adapters: number;
  /** Other cases whose requests come as well. */
  readonly beside: readonly Pick<ChoiceCase, "path" | "halves" | "rateScale" | "tokenScale" | "outputScale">[];
}

const OPEN = {
  fleet: "even",
  engines: 8,
  sessionsPerSecond: 1,
  tokenScale: 1,
  outputScale: 1,
  thinkSecondsMax: Infinity,
  adapters: 0,
  beside: [],
} as const;
const MOONCAKE = { ...OPEN, path: "mooncake/conversation_trace.jsonl", halves: "time" } as const;
const AZURE = { ...OPEN, path: "azure/AzureLLMInferenceTrace_code.csv", halves: "time" } as const;
const CHATBOT = { ...OPEN, path: "chatbot.yaml", halves: "draws" } as const;
/** Closed loop: a session's next turn comes after its last one was answered. All sessions once. */
const WEKA = { ...OPEN, path: "weka", halves: "sessions", rateScale: 1, engines: 4, thinkSecondsMax: 5 } as const;

export const CHOICE_CASES: readonly ChoiceCase[] = [
  { ...MOONCAKE, name: "conversations, moderate", rateScale: 3 },
  { ...MOONCAKE, name: "conversations, high", rateScale: 4.5 },
  { ...MOONCAKE, name: "conversations, overload", rateScale: 7 },
  { ...WEKA, name: "agents, closed loop, moderate", sessionsPerSecond: 0.2 },
  { ...WEKA, name: "agents, closed loop, high", sessionsPerSecond: 2 },
  { ...AZURE, name: "code, moderate", rateScale: 15 },
  { ...AZURE, name: "code, high", rateScale: 25 },
  { ...MOONCAKE, name: "decode-heavy, moderate", rateScale: 4, tokenScale: 0.25, outputScale: 3 },
  { ...MOONCAKE, name: "decode-heavy, high", rateScale: 16, tokenScale: 0.25, outputScale: 3 },
  { ...CHATBOT, name: "short prompts, moderate", rateScale: 4 },
  { ...MOONCAKE, name: "short prompts, high", rateScale: 40, tokenScale: 0.1, outputScale: 0.5 },
  { ...MOONCAKE, name: "H100 and A100, conversations", rateScale: 1.5, fleet: "mixed" },
  { ...WEKA, name: "H100 and A100, agents", sessionsPerSecond: 1, fleet: "mixed" },
  { ...MOONCAKE, name: "engines of two sizes", rateScale: 2.5, fleet: "sizes" },
  { ...MOONCAKE, name: "six adapters", rateScale: 3, adapters: 6 },
  { ...MOONCAKE, name: "stale signals, conversations", rateScale: 4, scrapeMillis: 10_000 },
  { ...WEKA, name: "stale signals, agents", sessionsPerSecond: 1, scrapeMillis: 10_000 },
  {
    ...CHATBOT,
    name: "requests of mixed sizes",
    rateScale: 2,
    beside: [
      { ...MOONCAKE, rateScale: 1.5 },
      { ...AZURE, rateScale: 6 },
    ],
  },
];
