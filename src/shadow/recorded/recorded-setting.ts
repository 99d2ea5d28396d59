import { checkProfile } from "#core/profile/check.ts";
import type { Micros } from "#core/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import type { TraceHeader } from "#trace/record.ts";
import type { Candidate, Setting } from "../question/candidate.ts";
import type { RecordedRun } from "./recorded-run.ts";

/** What a recorded run does not tell of itself. */
export interface Assumed {
  readonly engine: EngineConfig;
  /** Goes with the engine. */
  readonly residuals: StepResiduals | undefined;
  readonly scrapeMicros: Micros;
  /** From the decision until the engine has the request, and from the engine until the client has a token; 0 if left out. */
  readonly requestMicros?: Micros;
  readonly answerMicros?: Micros;
}

/** A recorded run as a question has it: its traffic, its fleet and its router, on the engines that are assumed. */
export function recordedSetting(run: RecordedRun, assumed: Assumed): Setting {
  const { router } = run.header;
  return {
    seed: router.seed,
    workload: run.workload,
    endpoints: run.endpoints,
    fleetEvents: run.fleetEvents,
    engine: assumed.engine,
    residuals: assumed.residuals,
    signals: scrapedEvery(assumed.scrapeMicros),
    blockTokens: router.blockTokens,
    staleAfterMicros: router.staleAfterMicros,
    requestMicros: assumed.requestMicros ?? 0,
    answerMicros: assumed.answerMicros ?? 0,
    rateScale: 1,
  };
}

/**
 * The profile that requests were routed by unless they named another. Throws an Error where the trace lacks it, or where
 * it asks for what this version does not have.
 */
export function inForceOf({ router: { profiles, defaultProfile } }: TraceHeader): Candidate {
  const spec = profiles[defaultProfile];
  if (spec === undefined) throw new Error(`does not hold the profile that was in force, ${defaultProfile}`);
  const [problem] = checkProfile(spec);
  if (problem !== undefined)
    throw new Error(
      `was routed by ${defaultProfile}, which is none of this version: ${problem.path}: ${problem.message}`,
    );
  return { name: defaultProfile, spec };
}
