import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { Simulation } from "./simulation.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";
import type { ArrivalSource } from "./setting/arrival-source.ts";
import type { ScalingOptions } from "./setting/scaling-options.ts";

const WINDOW_MICROS = 10 * MICROS_PER_SECOND;

/**
 * The same, with what arrives made known to the policy `oracle`: by a run of the largest fleet, since turns of a
 * conversation come when the ones before them are answered. Other policies need no such run.
 */
export function foreseeing(
  scaling: ScalingOptions,
  cluster: Omit<SimulationOptions, "arrivals">,
  arrivals: () => ArrivalSource,
): ScalingOptions {
  if (scaling.autoscaler.policy.type !== "oracle") return scaling;
  const [first] = cluster.engines;
  const engines = Array.from({ length: scaling.autoscaler.max }, (_, i) => ({
    config: first!.config,
    endpoint: { ...first!.endpoint, id: `largest-${i}` },
  }));
  const run = new Simulation({ ...cluster, engines, fleetEvents: [], scaling: undefined, arrivals: arrivals() });
  run.run();
  const { arrivalAt, length } = run.outcomes;
  const counts: number[] = [];
  for (let row = 0; row < length; row++) {
    const window = Math.floor(arrivalAt[row]! / WINDOW_MICROS);
    while (counts.length <= window) counts.push(0);
    counts[window]!++;
  }
  const perSecond = counts.map((count) => (count * MICROS_PER_SECOND) / WINDOW_MICROS);
  return { ...scaling, arrivals: { windowMicros: WINDOW_MICROS, perSecond } };
}
