import { basename, resolve } from "node:path";
import type { Candidate, CandidateOutcome, Setting } from "#shadow/candidate/candidate.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { divergences } from "#shadow/report/divergence.ts";
import { whatIfPage } from "#shadow/report/what-if-page.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { writeWholeFile } from "#trace/export/whole-file.ts";

/** Requests shown with both decisions. */
const DIVERGENCES_MAX = 6;

export interface PageInput {
  readonly path: string;
  readonly engine: string;
  readonly isEngineGuess: boolean;
  readonly setting: Setting;
  /** All that were simulated, that in force among them. */
  readonly profiles: readonly Candidate[];
  readonly outcomes: readonly CandidateOutcome[];
  readonly observed: readonly Observed[] | undefined;
  readonly notes: readonly string[];
}

/** Writes the answer as one page. */
export function writeWhatIfPage(file: string, answer: WhatIfAnswer, input: PageInput): void {
  const { setting, outcomes, observed } = input;
  const { workload } = setting;
  const page = whatIfPage(answer, {
    trace: basename(resolve(input.path)),
    engine: basename(input.engine),
    isEngineGuess: input.isEngineGuess,
    outcomes,
    observed,
    observedArrivalMicros: Float64Array.from(workload, ({ arrivalMicros }) => arrivalMicros),
    promptTokens: Float64Array.from(workload, ({ promptTokens }) => promptTokens),
    endpoints: endpointNames(setting, input.profiles),
    divergences: divergences(setting, input.profiles, outcomes, DIVERGENCES_MAX),
    notes: input.notes,
  });
  writeWholeFile(file, page);
}

/** Endpoints in order of their joining, as outcomes number them; those of a larger scenario after them. */
function endpointNames({ endpoints, fleetEvents }: Setting, profiles: readonly Candidate[]): string[] {
  const names = endpoints.map(({ id }) => id);
  for (const event of fleetEvents) if (event.kind === "endpoint-joined") names.push(event.endpoint.id);
  for (const { scenario } of profiles)
    for (const { id } of scenario?.endpoints?.slice(names.length) ?? []) names.push(id);
  return names;
}
