import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { SignalOptions } from "#sim/setting/signal-options.ts";
import type { Setting } from "./candidate.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";

/** What a recorded run does not state about itself. */
export interface Assumed {
  readonly engine: EngineConfig;
  /** Goes with the engine. */
  readonly residuals: StepResiduals | undefined;
  /** How gauges reach the router, and when they are stale; by default as the trace's own router had it. */
  readonly signals: SignalOptions;
  readonly staleAfterMicros?: Micros;
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
    signals: assumed.signals,
    blockTokens: router.blockTokens,
    staleAfterMicros: Math.max(assumed.staleAfterMicros ?? 0, router.staleAfterMicros),
    requestMicros: assumed.requestMicros ?? 0,
    answerMicros: assumed.answerMicros ?? 0,
    rateScale: 1,
    ...(router.hostMemory && { hostMemory: router.hostMemory }),
    ...(router.endpointRules && { endpointRules: router.endpointRules }),
    ...(router.admission && { admission: router.admission }),
  };
}
