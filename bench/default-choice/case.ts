import type { Case, Study } from "../profiles/case.ts";

/** What a half of a workload is used for: choosing a default, or judging the one that was chosen. */
export const HALVES = ["choosing", "held-out"] as const;
export type HalfName = (typeof HALVES)[number];

/** Traffic, fleet and signals that a default has to do well on. */
export interface ChoiceCase extends Pick<Case, "path" | "rateScale" | "sessionsPerSecond"> {
  /** Family and load. */
  readonly name: string;
  readonly fleet: Study["fleet"] | "strange";
  readonly engines: number;
  /** conversations: every second one of a trace that names none; the others as in Case. */
  readonly halves: Case["halves"] | "conversations";
  /** Between two scrapes of every engine; left out: as the router that a profile comes from has it. */
  readonly scrapeMillis?: number;
  /** Factors on prompts, with what their blocks stand for, and on answers. */
  readonly tokenScale: number;
  readonly outputScale: number;
  /** Longest pause of a session's client. */
  readonly thinkSecondsMax: number;
  /** Other cases whose requests come as well. */
  readonly beside: readonly Pick<ChoiceCase, "path" | "halves" | "rateScale" | "tokenScale" | "outputScale">[];
}

/** Traffic that comes whatever becomes of it, to eight equal engines. */
export const OPEN = {
  fleet: "even",
  engines: 8,
  sessionsPerSecond: 1,
  tokenScale: 1,
  outputScale: 1,
  thinkSecondsMax: Infinity,
  beside: [],
} as const;
/** A half of these has half of the trace's rate. */
const MOONCAKE = { ...OPEN, path: "mooncake/conversation_trace.jsonl", halves: "conversations" } as const;
const AZURE = { ...OPEN, path: "azure/AzureLLMInferenceTrace_code.csv", halves: "conversations" } as const;
const CHATBOT = { ...OPEN, path: "chatbot.yaml", halves: "draws" } as const;
/** Closed loop: a session's next turn comes after its last one was answered. */
const WEKA = { ...OPEN, path: "weka", halves: "sessions", rateScale: 1, thinkSecondsMax: 30 } as const;

const LOADS = ["moderate", "high", "overload"] as const;
type Family = Omit<ChoiceCase, "name" | "rateScale" | "sessionsPerSecond"> &
  Partial<Pick<ChoiceCase, "rateScale" | "sessionsPerSecond">>;

/** A family at three loads, from room everywhere to more than the fleet can serve; `loads` are rates. */
function family(name: string, one: Family, loads: readonly [number, number, number]): ChoiceCase[] {
  return loads.map((rate, i) => ({
    ...one,
    name: `${name}, ${LOADS[i]!}`,
    rateScale: one.halves === "sessions" ? 1 : rate,
    sessionsPerSecond: one.halves === "sessions" ? rate : 1,
    beside: one.beside.map((other) => ({ ...other, rateScale: (other.rateScale * rate) / loads[0] })),
  }));
}

/**
 * `strange` engines are of another form than any router's model of them: measured kernels of another board, steps that
 * vary by 30 %, a machine that stands still now and then, and half the cache that the router takes them for.
 */
export const CHOICE_CASES: readonly ChoiceCase[] = [
  ...family("conversations", MOONCAKE, [4, 7, 12]),
  ...family("agents", WEKA, [0.05, 0.1, 0.3]),
  ...family("code", AZURE, [24, 40, 60]),
  ...family("unshared chat", { ...AZURE, tokenScale: 0.55, outputScale: 7.5 }, [16, 32, 60]),
  ...family("long answers", { ...MOONCAKE, tokenScale: 0.25, outputScale: 3 }, [8, 16, 32]),
  ...family("shared system prompts", CHATBOT, [3, 6, 12]),
  ...family("unlike boards", { ...MOONCAKE, fleet: "mixed" }, [2, 4, 8]),
  ...family("strange engines", { ...MOONCAKE, fleet: "strange", tokenScale: 0.5 }, [2, 4, 7]),
  ...family(
    "mixed sizes",
    {
      ...CHATBOT,
      fleet: "sizes",
      beside: [
        { ...MOONCAKE, rateScale: 2 },
        { ...AZURE, rateScale: 10 },
      ],
    },
    [2, 3, 4.5],
  ),
];
