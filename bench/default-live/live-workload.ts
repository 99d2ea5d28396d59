import { writeFileSync } from "node:fs";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { choiceWorkload } from "../default-choice/choice-workload.ts";
import type { LiveCase } from "./live-case.ts";

/**
 * Requests that come first and are not counted, live and simulated alike: they get code compiled and connections opened.
 * Their prompts have nothing in common with any other.
 */
export const WARM_UP_REQUESTS = 40;
/** On the wall clock. */
const WARM_UP_PER_SECOND = 40;
const WARM_UP_SECONDS = 2;
const WARM_UP_PROMPT_TOKENS = 400;
const WARM_UP_OUTPUT_TOKENS = 16;

/** What a seed of a case sends: the held-out half's, behind the warm-up, by the workload's own clock. */
export async function liveWorkload(one: LiveCase, seed: number, traces: string): Promise<WorkloadRequest[]> {
  const requests = await choiceWorkload(one, "held-out", seed, one.requests, traces);
  const warmUp = Array.from({ length: WARM_UP_REQUESTS }, (_, index) => ({
    ...LENGTHS_ONLY,
    index,
    arrivalMicros: Math.round((index * MICROS_PER_SECOND * one.timeScale) / WARM_UP_PER_SECOND),
    promptTokens: WARM_UP_PROMPT_TOKENS,
    outputTokens: WARM_UP_OUTPUT_TOKENS,
  }));
  const later = WARM_UP_SECONDS * MICROS_PER_SECOND * one.timeScale;
  const sent = requests.map((request) => ({
    ...request,
    index: request.index + WARM_UP_REQUESTS,
    arrivalMicros: Math.round(request.arrivalMicros + later),
  }));
  return [...warmUp, ...sent];
}

/** As a file that `gnomon drive` reads. */
export function writeWorkload(file: string, requests: readonly WorkloadRequest[]): void {
  writeFileSync(file, workloadFileHeader(["held-out case, live"]) + requests.map(workloadLine).join(""));
}
