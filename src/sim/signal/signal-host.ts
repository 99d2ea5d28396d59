import type { Input } from "#core/input.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { Micros } from "#core/units.ts";
import type { EngineFleet } from "../engine-fleet.ts";
import type { FaultDesk } from "../fault/fault-desk.ts";
import type { SimulationEvent } from "../simulation-event.ts";
import type { SignalHost } from "./signal-feed.ts";

interface Signalled {
  readonly fleet: EngineFleet;
  readonly desk: Pick<FaultDesk, "probes"> | undefined;
  later(at: Micros, event: SimulationEvent): void;
  accept(input: Input): void;
}

/** How signals reach a simulation: through its agenda, its router and, where something may fail, its probes. */
export function signalHost(simulation: Signalled, { probeMicrosMax }: PathRules, quietUntil: () => Micros): SignalHost {
  return {
    later: (at, take) => simulation.later(at, { kind: "signal", take }),
    quietUntil,
    observed: (at, engine, load, moved) => {
      simulation.desk?.probes.reading(engine);
      simulation.accept({ kind: "load-observed", at, endpoint: simulation.fleet.specs[engine]!.endpoint.id, load });
      simulation.desk?.probes.read(engine, moved);
    },
    reach: (engine) => simulation.desk?.probes.reach(engine) ?? "answered",
    failed: (_at, engine, found) => simulation.desk?.probes.failed(engine, found),
    probeMicrosMax,
  };
}
