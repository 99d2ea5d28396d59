import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { CheckJudge } from "#core/endpoint/check-judge.ts";
import { HangWatch } from "#core/path/hang-watch.ts";
import { LostJudge, returnPause } from "#core/endpoint/lost-judge.ts";
import type { Input } from "#core/input/input.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { EngineTrouble } from "../result/path-counts.ts";
import type { Reach, SignalFeed } from "../signal/signal-feed.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";

/** The simulation as probes see it. */
export interface ProbeHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  accept(input: Input): void;
  later(at: Micros, event: SimulationEvent): void;
  readonly signals: Pick<SignalFeed, "joined" | "left" | "replaced">;
}

/** What probes of engines find, and what follows from it: lost, hung, back. */
export class FleetProbes {
  readonly hangs: HangWatch;
  readonly #rules: PathRules;
  readonly #host: ProbeHost;
  readonly #judges = new Map<number, LostJudge>();
  readonly #checks = new Map<number, { readonly judge: CheckJudge; nextAt: Micros }>();
  /** Endpoints that are lost and not back. */
  readonly #lost = new Set<EndpointId>();
  /** Engines whose counters began anew since they were last read. */
  readonly #anew = new Set<number>();
  /** Endpoints that the router knows to sleep. */
  readonly #asleep = new Set<EndpointId>();

  constructor(rules: PathRules, host: ProbeHost) {
    this.#rules = rules;
    this.#host = host;
    const accept = (input: Input): void => host.accept(input);
    this.hangs = new HangWatch({ judge: rules.hang, servedUntilWell: rules.servedUntilWell, accept });
  }

  get troubled(): boolean {
    return this.#host.fleet.conditions.some((condition) => condition !== "serving");
  }

  troubleOf(endpoint: EndpointId): EngineTrouble | undefined {
    if (this.#lost.has(endpoint)) return "lost";
    if (this.hangs.isHung(endpoint)) return "hung";
    return this.#asleep.has(endpoint) ? "asleep" : undefined;
  }

  /** An input that the router accepted. */
  follow(input: Input): void {
    this.hangs.follow(input);
    if (input.kind === "endpoint-joined") this.#lost.delete(input.endpoint.id);
    else if (input.kind === "endpoint-left" && input.lost === true) this.#lost.add(input.endpoint);
    if (input.kind === "endpoint-slept" && input.asleep) this.#asleep.add(input.endpoint);
    else if (input.kind === "endpoint-slept" || input.kind === "endpoint-left") this.#asleep.delete(input.endpoint);
  }

  /**
   * A health check with a scrape, once its time has come; it succeeds where the server answers at all. A simulation asks at
   * the scrapes, so that checks are up to one scrape late.
   */
  #check(engine: number, succeeded: boolean): void {
    const { check } = this.#rules;
    const { clock: at } = this.#host;
    if (check === undefined) return;
    const known = this.#checks.get(engine) ?? { judge: new CheckJudge(check), nextAt: at };
    this.#checks.set(engine, known);
    if (at < known.nextAt) return;
    known.nextAt = at + check.intervalMicros;
    if (!known.judge.checked(succeeded)) return;
    this.#host.accept({ kind: "endpoint-checked", at, endpoint: this.#idOf(engine), healthy: known.judge.healthy });
  }

  reach(engine: number): Reach {
    switch (this.#host.fleet.conditions[engine]!) {
      case "dead":
      case "vanished":
        return "unreachable";
      case "hung":
        return "silent";
      case "serving":
      case "asleep":
      case "draining":
      case "refusing":
        return "answered";
    }
  }

  /** A page was read; before the router gets to know it. */
  reading(engine: number): void {
    this.#judgeOf(engine).reached();
    if (this.#anew.delete(engine))
      this.#host.accept({ kind: "blocks-cleared", at: this.#host.clock, endpoint: this.#idOf(engine) });
    this.#shows(engine, this.#host.fleet.conditions[engine] === "asleep");
  }

  /** Its page shows whether it sleeps; the router gets to know what is new. */
  #shows(engine: number, asleep: boolean): void {
    const endpoint = this.#idOf(engine);
    if (this.#asleep.has(endpoint) === asleep) return;
    const { clock: at } = this.#host;
    this.#host.accept({ kind: "endpoint-slept", at, endpoint, asleep, ...(asleep && { emptied: true }) });
  }

  read(engine: number, moved: boolean): void {
    this.hangs.probed(this.#idOf(engine), moved ? "moving" : "static", this.#host.clock);
    this.#check(engine, true);
  }

  failed(engine: number, found: "unreachable" | "none" | "health"): void {
    const { clock: at } = this.#host;
    const endpoint = this.#idOf(engine);
    this.#check(engine, found === "health");
    if (found !== "unreachable") {
      this.#judgeOf(engine).reached();
      return this.hangs.probed(endpoint, found, at);
    }
    if (!this.#judgeOf(engine).unreachable(at)) return;
    this.#judges.delete(engine);
    this.#checks.delete(engine);
    this.#host.accept({ kind: "endpoint-left", at, endpoint, lost: true });
    this.#host.signals.left(engine);
    this.asks(engine, 0);
  }

  /** A lost server is asked whether it is there again; who comes back has an empty cache. */
  asks(engine: number, attempt: number): void {
    const { fleet, clock } = this.#host;
    const { endpoint } = fleet.specs[engine]!;
    const { id } = endpoint;
    if (!this.#lost.has(id)) return;
    if (this.reach(engine) === "answered") {
      this.#anew.delete(engine);
      this.#host.accept({ kind: "endpoint-joined", at: clock, endpoint });
      return this.#host.signals.joined(clock, engine);
    }
    const pause = Math.round(returnPause(id, attempt, this.#rules.returns));
    this.#host.later(clock + pause, { kind: "return", engine, attempt: attempt + 1 });
  }

  /** Another process serves in place of one that was not missed yet. */
  replaced(engine: number): void {
    this.#anew.add(engine);
  }

  #judgeOf(engine: number): LostJudge {
    const judge = this.#judges.get(engine) ?? new LostJudge(this.#rules.lostAfterMicros);
    this.#judges.set(engine, judge);
    return judge;
  }

  #idOf(engine: number): EndpointId {
    return this.#host.fleet.specs[engine]!.endpoint.id;
  }
}
