import { assert } from "#core/base/assert.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineObserver } from "../path/engine-observer.ts";
import type { EngineFleet, EngineSpec } from "../fleet/engine-fleet.ts";
import type { EngineFaults } from "../fault/engine-faults.ts";
import type { CacheFollower } from "../fleet/cache-follower.ts";
import type { SignalFeed } from "../signal/signal-feed.ts";
import type { ScriptEvent, SimulationOptions } from "../setting/simulation-options.ts";

/** The simulation as changes of its fleet see it. */
export interface ChangeHost {
  readonly fleet: EngineFleet;
  readonly observer: EngineObserver;
  readonly signals: SignalFeed;
  accept(input: Input): void;
}

/** Endpoints that come, change and go, and what happens to the engines behind them. */
export class FleetChanges {
  readonly #options: Pick<SimulationOptions, "engineOf" | "engines">;
  readonly #host: ChangeHost;
  readonly #caches: CacheFollower | undefined;
  readonly #faults: EngineFaults | undefined;

  constructor(
    options: Pick<SimulationOptions, "engineOf" | "engines">,
    host: ChangeHost,
    caches: CacheFollower | undefined,
    faults: EngineFaults | undefined,
  ) {
    this.#options = options;
    this.#host = host;
    this.#caches = caches;
    this.#faults = faults;
  }

  join(at: Micros, spec: EngineSpec): void {
    const { fleet, observer, signals } = this.#host;
    const number = fleet.size;
    fleet.add(spec, (clock) => observer.sinkOf(number, spec.config, this.#caches, clock));
    this.#host.accept({ kind: "endpoint-joined", at, endpoint: spec.endpoint });
    this.#caches?.joined?.(at, number);
    signals.joined(at, number);
  }

  /** An endpoint that leaves ends what it has, unless it is lost; what joins is a new engine. */
  take(change: ScriptEvent): void {
    switch (change.kind) {
      case "endpoint-joined": {
        const config = this.#options.engineOf?.(change) ?? this.#options.engines[0]?.config;
        assert(config !== undefined, "an endpoint that joins has an engine's configuration");
        return this.join(change.at, { endpoint: change.endpoint, config });
      }
      case "endpoint-left": {
        const number = this.#host.fleet.numberOf(change.endpoint);
        this.#host.accept(change);
        this.#host.signals.left(number);
        if (change.lost === true) this.#faults?.kill(number);
        return;
      }
      case "endpoint-slept": {
        const { at, endpoint, asleep, emptied } = change;
        this.#host.accept(change);
        // A trace may speak of one that nobody saw join.
        if (!this.#host.fleet.has(endpoint)) return;
        const kept = emptied === true ? {} : { keepsCache: true as const };
        return this.#faults?.happens({ kind: asleep ? "engine-asleep" : "engine-awake", at, endpoint, ...kept });
      }
      case "endpoint-changed":
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "endpoint-checked":
      case "endpoint-suspended":
      case "endpoint-resumed":
      case "profile-changed":
      case "policy-changed":
      case "rollout-planned":
      case "rollout-step":
      case "rollout-removed":
      case "rollout-restored":
      case "sessions-restored":
        return this.#host.accept(change);
      case "engine-killed":
      case "engine-vanished":
      case "engine-hung":
      case "engine-continued":
      case "engine-asleep":
      case "engine-awake":
      case "engine-draining":
      case "engine-refusing":
      case "engine-started":
      case "answers-cut":
        return this.#faults?.happens(change);
    }
  }
}
