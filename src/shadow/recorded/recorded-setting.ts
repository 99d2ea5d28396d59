import type { Micros } from "#core/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import type { Setting } from "../question/candidate.ts";
import type { RecordedRun } from "./recorded-run.ts";

/** What a recorded run does not state about itself. */
export interface Assumed {
  readonly engine: EngineConfig;
  /** Goes with the engine. */
  readonly residuals: StepResiduals | undefined;
  readonly scrapeMicros: Micros;
  /**
   * From the decision until the engine has the request, and from the engine until the client has a token; 0 if left
   * out.
   */
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
    ...(router.hostMemory && { hostMemory: router.hostMemory }),
    ...(router.endpointRules && { endpointRules: router.endpointRules }),
    ...(router.admission && { admission: router.admission }),
  };
}
