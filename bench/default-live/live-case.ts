import { CHOICE_CASES, type ChoiceCase } from "../default-choice/case.ts";

/** A held-out case that is small and slow enough to be driven over sockets on a machine of two cores. */
export interface LiveCase extends ChoiceCase {
  /** Seconds of the engines and of the workload per second of the wall clock. */
  readonly timeScale: number;
  readonly requests: number;
}

const ENGINES = 4;

/** A case of the simulated table before so many engines, at the rate that is the same for each of them. */
function before(name: string): ChoiceCase {
  const one = CHOICE_CASES.find((other) => other.name === name);
  if (one === undefined) throw new RangeError(`there is no case ${name}`);
  return { ...one, engines: ENGINES, rateScale: (one.rateScale * ENGINES) / one.engines };
}

/** What the default was never tried on before it was chosen, nor since. */
const AZURE_CONVERSATIONS = {
  ...before("code, high"),
  name: "chats without shared prompts, peak",
  path: "azure/AzureLLMInferenceTrace_conv.csv",
  rateScale: 8,
};

export const LIVE_CASES: readonly LiveCase[] = [
  { ...before("conversations, moderate"), timeScale: 4, requests: 300 },
  { ...before("conversations, high"), timeScale: 3, requests: 300 },
  { ...before("agents, closed loop, high"), timeScale: 4, requests: 200 },
  { ...AZURE_CONVERSATIONS, timeScale: 1, requests: 600 },
  { ...before("decode-heavy, moderate"), timeScale: 1, requests: 150 },
  { ...before("short prompts, high"), timeScale: 1, requests: 600 },
  { ...before("H100 and A100, conversations"), timeScale: 5, requests: 250 },
];

export const LIVE_POLICIES: readonly string[] = [
  "gnomon",
  "gnomon-predicted",
  "llm-d",
  "aibrix-prefix-cache",
  "load-only",
  "unified",
  "lmetric",
];
