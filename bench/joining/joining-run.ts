import type { NamedProfile } from "#config/profile-file.ts";
import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { runCase } from "../profiles/run-case.ts";
import { type ChangingFleet, changingFleet } from "./changing-fleet.ts";
import { TrafficShares } from "./traffic-shares.ts";

export interface JoiningRun {
  readonly fleet: ChangingFleet;
  readonly shares: TrafficShares;
  readonly lastsMicros: Micros;
  readonly ttftMicros: Micros;
  readonly e2eMicros: Micros;
}

/** One profile on one workload, before a fleet of so many that changes meanwhile. */
export function joiningRun(
  requests: readonly WorkloadRequest[],
  profile: NamedProfile,
  engines: number,
  seed: number,
): JoiningRun {
  const lastsMicros = requests.reduce((last, { arrivalMicros }) => Math.max(last, arrivalMicros), 0);
  const fleet = changingFleet(engines, lastsMicros);
  const shares = new TrafficShares();
  const scrapeMicros = Math.round(signalsOfProfile(profile).intervalMillis * MICROS_PER_MILLI);
  const study = { seed, requestsMax: Infinity, half: "all", engines, fleet: "even", scrapeMicros } as const;
  const { metrics } = runCase({ rateScale: 8 / engines }, study, requests, profile, scrapeMicros, {
    engines: fleet.engines,
    changes: fleet,
    observe: (input, decision) => shares.observe(input, decision),
  });
  const mean = (of: { readonly mean: number } | undefined): number => of?.mean ?? NaN;
  return {
    fleet,
    shares,
    lastsMicros,
    ttftMicros: mean(metrics.ttftMicros["all"]),
    e2eMicros: mean(metrics.e2eMicros["all"]),
  };
}
