import type { Micros } from "#core/base/units.ts";
import { type Outcomes, type Status, STATUSES } from "./result/outcomes.ts";
import {
  type EndpointFigures,
  endpointFigures,
  type Metrics,
  metricsOf,
  type TenantFigures,
  tenantFigures,
} from "./result/metrics.ts";
import { type PathCounts } from "./result/path-counts.ts";
import type { SloTargets } from "./result/slo.ts";
import type { ScalingFigures } from "./setting/scaling-options.ts";
import { Simulation } from "./simulation.ts";
import type { StagedOptions, StageFigures } from "./path/stage-performer.ts";

/** What a run came to: every request in columns, and what follows from them. Nothing in it depends on the machine. */
export interface SimulationResult {
  readonly outcomes: Outcomes;
  /** Simulated time of the last end, or the horizon. */
  readonly endedAt: Micros;
  readonly requests: Readonly<Record<Status, number>>;
  /** Requests that admission refused, by its reason, and times that it asked one to wait. */
  readonly rejections: Readonly<Record<string, number>>;
  readonly delays: number;
  /** What became of attempts, as the gateway's metrics count it. */
  readonly path: PathCounts;
  /** Turns that never came since the ones before them did not end. */
  readonly stranded: number;
  readonly metrics: Metrics;
  readonly endpoints: readonly EndpointFigures[];
  readonly tenants: readonly TenantFigures[];
  /** Where the number of engines followed the load. */
  readonly scaling?: ScalingFigures | undefined;
  /** Of stages that it was asked for with, and of one that its profiles have. */
  readonly stages: readonly StageFigures[];
  /** Events that the run took, for judging its cost. */
  readonly events: number;
}

/** Runs a cluster in virtual time until all requests have ended, or to the horizon. */
export function simulate(options: StagedOptions, targets: SloTargets = {}): SimulationResult {
  const simulation = new Simulation(options);
  simulation.run();
  const { outcomes, fleet, observer, gate, routing, events, clock } = simulation;
  const endedAt = simulation.open > 0 && options.horizonMicros < Infinity ? options.horizonMicros : clock;
  return {
    outcomes,
    endedAt,
    requests: countByStatus(outcomes),
    rejections: Object.fromEntries([...gate.rejections, ...routing.refusals].sort(([a], [b]) => (a < b ? -1 : 1))),
    delays: gate.delays + routing.waits,
    path: simulation.paths.counts,
    stranded: options.arrivals.stranded,
    metrics: metricsOf(outcomes, fleet, endedAt, options.tokenGaps ? observer.gaps : undefined, targets),
    endpoints: endpointFigures(outcomes, fleet, endedAt),
    tenants: tenantFigures(outcomes),
    ...(simulation.scaling && { scaling: simulation.scaling.figures(endedAt) }),
    stages: [...stageFigures(simulation)],
    events,
  };
}

function* stageFigures({ ahead, stages }: Simulation): Generator<StageFigures> {
  const figures = ahead.figures();
  if (figures !== undefined) yield figures;
  for (const stage of stages) yield stage.figures();
}

function countByStatus(outcomes: Outcomes): Record<Status, number> {
  const counts = new Uint32Array(STATUSES.length);
  for (let row = 0; row < outcomes.length; row++) counts[outcomes.status[row]!]!++;
  return Object.fromEntries(STATUSES.map((status, number) => [status, counts[number]!])) as Record<Status, number>;
}
