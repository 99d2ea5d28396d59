import type { Input } from "#core/input/input.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import type { Reach, SignalHost } from "./signal-feed.ts";

/** Who judges engines by what looking at them shows. */
interface EngineProbes {
  /** A page was read; before the router gets to know it, and after. */
  reading(engine: number): void;
  read(engine: number, moved: boolean): void;
  reach(engine: number): Reach;
  failed(engine: number, found: "unreachable" | "none" | "health"): void;
}

interface Signalled {
  readonly fleet: EngineFleet;
  /** Undefined where nothing can fail. */
  readonly desk: { readonly probes: EngineProbes } | undefined;
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
