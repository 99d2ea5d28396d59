import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { isOverdue, look } from "#core/path/look.ts";
import { attemptFailed, TIMED_OUT } from "#core/path/path-event.ts";
import { isUnderWay } from "#core/path/path-state.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { FAULT_OF_TROUBLE, faultOfLeaving, troubleSince } from "#core/path/wait-verdict.ts";
import { SlotList } from "#core/base/slot-list.ts";
import type { Micros } from "#core/base/units.ts";
import type { Flight } from "../path/flight.ts";
import type { FlightPaths } from "../path/flight-paths.ts";
import type { RouterGroup } from "../routers/router-group.ts";
import type { StagePerformer, StageHost } from "../path/stage-performer.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import { type EngineFaultHost, EngineFaults } from "./engine-faults.ts";
import { FleetProbes, type ProbeHost } from "./fleet-probes.ts";

/** The simulation as the desk sees it. */
export interface FaultHost extends ProbeHost, EngineFaultHost, StageHost {
  readonly router: RouterGroup;
  readonly paths: FlightPaths;
}

type FaultEvent = Extract<SimulationEvent, { readonly kind: "broke" | "gave-up" | "sweep" | "return" }>;

/**
 * Engines that fail, the probes that find them so, and the looks at what waits there: what the gateway does by sockets and
 * timers. What becomes of the requests is decided on their paths.
 */
export class FaultDesk {
  readonly probes: FleetProbes;
  readonly engines: EngineFaults;
  readonly #rules: PathRules;
  /** Of stages that may be needed. */
  readonly #performers: readonly ((flight: Flight, host: StageHost) => void)[];
  readonly #host: FaultHost;
  readonly #flights = new SlotList<Flight>();
  #sweeps = false;

  constructor(rules: PathRules, performers: readonly StagePerformer[], host: FaultHost) {
    this.#rules = rules;
    this.#performers = performers.flatMap((one) => one.performs(rules) ?? []);
    this.#host = host;
    this.probes = new FleetProbes(rules, host);
    this.engines = new EngineFaults(host, this.#flights, (engine) => this.probes.replaced(engine));
  }

  /** Some engine is not as it should be: probes are not all alike. */
  get troubled(): boolean {
    return this.probes.troubled;
  }

  arrived(flight: Flight): void {
    this.#flights.add(flight);
    if (flight.standby === undefined) for (const perform of this.#performers) perform(flight, this.#host);
    if (this.#sweeps) return;
    this.#sweeps = true;
    this.#host.later(this.#host.clock + this.#rules.sweepMicros, { kind: "sweep" });
  }

  departed(flight: Flight): void {
    this.#flights.remove(flight);
  }

  /** Its answer is whole; answers take `answerMicros` on their way. */
  completed(flight: Flight, answerMicros: Micros): void {
    const endpoint = this.#endpointOf(flight);
    const { hangs } = this.probes;
    hangs.answered(endpoint, this.#host.clock);
    hangs.took(endpoint, "stream", flight.firstTokenAt + answerMicros - flight.sentAt);
  }

  /** Of an attempt, where it is still the one under way. */
  take(event: FaultEvent): void {
    switch (event.kind) {
      case "broke":
        return isCurrent(event) ? this.#host.paths.broke(event.flight, event.fault) : undefined;
      case "gave-up":
        return isCurrent(event) ? this.#gaveUp(event.flight) : undefined;
      case "sweep":
        return this.#sweep();
      case "return":
        return this.probes.asks(event.engine, event.attempt);
    }
  }

  #gaveUp(flight: Flight): void {
    if (!this.engines.takeBack(flight)) return;
    if (flight.standby !== undefined) return flight.standby.failed();
    this.#host.paths.left(flight, "timed-out", flight.tokensOfAll > 0 ? flight.tokensOfAll : undefined);
  }

  #sweep(): void {
    const { hangs } = this.probes;
    hangs.sweepBegins();
    this.#flights.each((flight) => {
      const isAtEngine = flight.engine >= 0 && !flight.closed && flight.standby === undefined;
      if (!isUnderWay(flight.path.state)) this.#endOverdue(flight);
      else if (isAtEngine) this.#look(flight);
    });
    hangs.sweepEnds(this.#host.clock);
    this.#sweeps = this.#flights.size > 0;
    if (this.#sweeps) this.#host.later(this.#host.clock + this.#rules.sweepMicros, { kind: "sweep" });
  }

  /** Between two engines, where neither knows its deadline. */
  #endOverdue({ path, source, deadlineAt = Infinity }: Flight): void {
    const found = { at: this.#host.clock, arrivedAt: source.arrivalAt, deadlineAt, streams: true };
    if (isOverdue(path, found, this.#rules.waits)) path.dispatch(TIMED_OUT);
  }

  /** A second engine that may fail. */
  #lookAtSecond(second: Flight): void {
    const { clock: at } = this.#host;
    const endpoint = this.#endpointOf(second);
    this.probes.hangs.waits(endpoint, "stream", second.quietSince);
    const found = this.probes.troubleOf(endpoint);
    second.trouble = troubleSince(second.trouble, found, at);
    if (found !== undefined) second.standby?.failed(FAULT_OF_TROUBLE[found]);
  }

  #look(flight: Flight): void {
    const { clock: at, fleet, paths, outcomes, router } = this.#host;
    const { hangs } = this.probes;
    const { path } = flight;
    const second = flight.second?.flight;
    if (second !== undefined) this.#lookAtSecond(second);
    const endpoint = this.#endpointOf(flight);
    const { kind } = path.state;
    const hasToken = kind === "passing" || (kind === "holding" && flight.firstTokenAt >= 0);
    const seen = hasToken ? (fleet.outputTokens(at, flight) ?? flight.tokensSeen) : 0;
    if (flight.progressed || seen > flight.tokensSeen) {
      flight.quietSince = at;
      hangs.answered(endpoint, at);
    } else {
      const promptTokens = hasToken ? 0 : flight.promptTokens - outcomes.expectedTokens[flight.row]!;
      hangs.waits(endpoint, hasToken ? "begun" : "stream", flight.quietSince, promptTokens);
    }
    flight.progressed = false;
    flight.tokensSeen = seen;
    const drains = router.routerOf(flight.id).isDraining(endpoint);
    const found = this.probes.troubleOf(endpoint) ?? (drains ? "draining" : undefined);
    flight.trouble = troubleSince(flight.trouble, found, at);
    const { sentAt, trouble } = flight;
    const attempt = { at, sentAt, trouble, quietMicros: at - flight.quietSince };
    const verdict = look(
      path,
      {
        ...attempt,
        arrivedAt: flight.source.arrivalAt,
        // Engines know their requests' deadlines here, and drop them in time.
        deadlineAt: Infinity,
        streams: true,
        blocked: false,
        continues: paths.continues(flight),
      },
      this.#rules.waits,
    );
    if (verdict === "wait" || verdict === "stalled") return;
    if (verdict === "help") return path.late();
    if (verdict === "time-out") return path.dispatch(TIMED_OUT);
    if (verdict === "move") paths.counts.moved[found ?? "late"]++;
    paths.broke(flight, faultOfLeaving(verdict, trouble));
  }

  /** What has no token yet there goes to another engine, as if that one had turned it down as it leaves. */
  redirect(engine: number): void {
    const leaving: Flight[] = [];
    this.#flights.each((flight) => {
      const { kind } = flight.path.state;
      const isWaiting = kind === "waiting" || kind === "ahead" || kind === "holding";
      if (flight.engine === engine && isWaiting && !flight.closed) leaving.push(flight);
    });
    for (const flight of leaving) {
      if (flight.standby === undefined) flight.path.dispatch(attemptFailed("draining"));
      else flight.standby.failed("draining");
    }
  }

  #endpointOf(flight: Flight): EndpointId {
    return this.#host.fleet.specs[flight.engine]!.endpoint.id;
  }
}

function isCurrent({ flight, engine }: { readonly flight: Flight; readonly engine: number }): boolean {
  return !flight.closed && flight.engine === engine;
}
