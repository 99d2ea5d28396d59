import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { calibrateInSteps, CannotIdentify } from "#shadow/calibrate/calibrate.ts";
import { calibrateUnstated } from "#shadow/calibrate/found-scheduling.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import { meanOf } from "#shadow/figure/mean-of.ts";
import type { Observed } from "#shadow/recorded/observed.ts";

/** Of an engine, what may be found anew: its times, and how it composes steps where nobody stated that. */
export type Refittable = "times" | "times and scheduling";

/** An engine as the traffic's own requests show it. */
export interface RefittedEngine {
  readonly engine: EngineConfig;
  readonly residuals: StepResiduals | undefined;
  /** Whose requests it was fitted to. */
  readonly endpoints: readonly string[];
}

/**
 * The setting's engine with its times fitted anew to what was observed, at all endpoints but those that are slower than the
 * fleet: a fit that holds one of them is none of the others'. A step after every replay; undefined where the requests do
 * not show all times.
 */
export function* refittedEngine(
  { workload, seed, engine: sizes, endpoints }: Setting,
  observed: readonly Observed[],
  slow: ReadonlySet<string>,
  what: Refittable,
): Generator<void, RefittedEngine | undefined> {
  const fleet = endpoints.map(({ id }) => id).filter((id) => !slow.has(id));
  const source = { workload: [...workload], observed, left: {}, header: { router: { seed } } };
  const evidence = evidenceOf(source, sizes.blockTokens, fleet);
  try {
    const { engine, residuals } =
      what === "times"
        ? yield* calibrateInSteps(evidence, { sizes })
        : (yield* calibrateUnstated(evidence, { sizes })).calibration;
    const own =
      residuals &&
      ofAll(
        residuals,
        evidence.endpoints,
        endpoints.map(({ id }) => id),
      );
    return { engine, residuals: own, endpoints: evidence.endpoints };
  } catch (error) {
    if (error instanceof CannotIdentify) return undefined;
    throw error;
  }
}

/** Steps of an endpoint that was left out wander as those of the others do on average. */
function ofAll(residuals: StepResiduals, fitted: readonly string[], all: readonly string[]): StepResiduals {
  const { windows } = residuals;
  const usual = windows[0]!.map((_, window) => meanOf(windows.map((logs) => logs[window]!)));
  return { ...residuals, windows: all.map((id) => windows[fitted.indexOf(id)] ?? usual) };
}
