import { workerData } from "piscina";
import { type Candidate, type CandidateOutcome, type Setting, runCandidate } from "./candidate.ts";

/** The setting comes once per thread, the candidates one by one. */
const { setting } = workerData as { setting: Setting };

export default function candidate(one: Candidate): CandidateOutcome {
  return runCandidate(setting, one);
}
