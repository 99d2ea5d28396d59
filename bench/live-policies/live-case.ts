import { CHOICE_CASES, type ChoiceCase } from "../default-choice/case.ts";

export interface LiveCase extends ChoiceCase {
  /** Of a run of about a minute at half the speed. */
  readonly requests: number;
}

function familyOf(name: string): ChoiceCase {
  const one = CHOICE_CASES.find((each) => each.name === name);
  if (one === undefined) throw new RangeError(`no case ${name}`);
  return one;
}

/** Prompts and answers shorter, and more of them, so that two cores can make and carry them. */
export const LIVE_CASES: readonly LiveCase[] = [
  {
    ...familyOf("conversations, high"),
    name: "conversations",
    tokenScale: 0.5,
    outputScale: 0.2,
    rateScale: 14,
    requests: 400,
  },
  {
    ...familyOf("agents, high"),
    name: "agents",
    tokenScale: 0.2,
    outputScale: 0.2,
    sessionsPerSecond: 2,
    thinkSecondsMax: 2,
    requests: 250,
  },
  { ...familyOf("unshared chat, high"), name: "unshared chat", outputScale: 3, rateScale: 24, requests: 400 },
];
