import type { Fault } from "#core/endpoint/fault.ts";
import type { SlotList } from "#core/base/slot-list.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { Flight } from "../path/flight.ts";
import type { SignalFeed } from "../signal/signal-feed.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import type { EngineEvent } from "../fleet/engine-event.ts";

/** The simulation as engines that fail see it. */
export interface EngineFaultHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  later(at: Micros, event: SimulationEvent): void;
  /** As an answer: after its way back. */
  answer(at: Micros, event: SimulationEvent): void;
  deliver(flight: Flight): void;
  /** Another process is read from a time on. */
  readonly signals: Pick<SignalFeed, "joined" | "left" | "replaced">;
}

/** Engines that are killed, hang, vanish or turn requests down, and what that does to the requests there. */
export class EngineFaults {
  readonly #host: EngineFaultHost;
  readonly #flights: SlotList<Flight>;
  readonly #replaced: (engine: number) => void;
  /** Requests that came to an engine that hangs or sleeps, by its number. */
  readonly #held = new Map<number, Flight[]>();

  /** `flights` are all in flight. */
  constructor(host: EngineFaultHost, flights: SlotList<Flight>, replaced: (engine: number) => void) {
    this.#host = host;
    this.#flights = flights;
    this.#replaced = replaced;
  }

  /** A request came to its engine; false where the engine takes it as it is. */
  meets(flight: Flight): boolean {
    const { fleet } = this.#host;
    const { engine } = flight;
    switch (fleet.conditions[engine]!) {
      case "draining":
        this.#breaks(flight, "draining");
        return true;
      case "refusing":
        this.#breaks(flight, "saturated");
        return true;
      case "dead":
      case "vanished":
        this.#breaks(flight, "connect");
        return true;
      case "hung":
      case "asleep":
        this.#held.set(engine, [...(this.#held.get(engine) ?? []), flight]);
        this.#watchDeadline(flight);
        return true;
      case "serving":
        if (fleet.shiftMicros(engine) > 0) this.#watchDeadline(flight);
        return false;
    }
  }

  happens({ kind, endpoint, keepsCache }: EngineEvent): void {
    const { fleet, clock } = this.#host;
    const engine = fleet.numberOf(endpoint);
    switch (kind) {
      case "engine-killed":
        return this.kill(engine);
      case "engine-vanished":
      case "engine-hung":
        fleet.stop(clock, engine);
        fleet.conditions[engine] = kind === "engine-hung" ? "hung" : "vanished";
        for (const flight of this.#at(engine)) this.#watchDeadline(flight);
        return;
      case "engine-asleep":
        return this.#fallsAsleep(engine, keepsCache === true);
      case "engine-awake":
        if (fleet.conditions[engine] === "asleep") this.#goesOn(engine);
        return;
      case "engine-continued":
        return this.#goesOn(engine);
      case "engine-draining":
      case "engine-refusing":
        if (fleet.conditions[engine] !== "dead")
          fleet.conditions[engine] = kind === "engine-draining" ? "draining" : "refusing";
        return;
      case "engine-started":
        return this.#starts(engine);
      case "answers-cut":
        for (const flight of this.#at(engine)) this.#drop(flight);
    }
  }

  /** The process is gone, and what it had. */
  kill(engine: number): void {
    const { fleet, clock } = this.#host;
    if (fleet.conditions[engine] === "dead") return;
    fleet.stop(clock, engine);
    fleet.conditions[engine] = "dead";
    const held = this.#takeHeld(engine);
    for (const flight of this.#at(engine)) this.#drop(flight);
    for (const flight of held) this.#breaks(flight);
  }

  #starts(engine: number): void {
    const { fleet, clock } = this.#host;
    const before = fleet.conditions[engine];
    if (before === "hung" || before === "asleep") return this.#goesOn(engine);
    if (before === "vanished") this.kill(engine);
    fleet.conditions[engine] = "serving";
    if (before !== "dead" && before !== "vanished") return;
    fleet.replace(clock, engine);
    this.#host.signals.replaced(clock, engine);
    this.#replaced(engine);
  }

  #fallsAsleep(engine: number, keepsCache: boolean): void {
    const { fleet, clock } = this.#host;
    if (fleet.conditions[engine] !== "serving") return;
    if (!keepsCache) fleet.forget(clock, engine);
    fleet.stop(clock, engine);
    fleet.conditions[engine] = "asleep";
    for (const flight of this.#at(engine)) this.#watchDeadline(flight);
  }

  #goesOn(engine: number): void {
    const { fleet, clock } = this.#host;
    const condition = fleet.conditions[engine];
    if (condition !== "hung" && condition !== "asleep") return;
    fleet.start(clock, engine);
    fleet.conditions[engine] = "serving";
    for (const flight of this.#takeHeld(engine)) this.#host.deliver(flight);
  }

  /** Those that have not left meanwhile. */
  #takeHeld(engine: number): Flight[] {
    const held = this.#held.get(engine) ?? [];
    this.#held.delete(engine);
    return held.filter((flight) => flight.engine === engine && !flight.closed);
  }

  /** Requests that an engine has, or that are on their way to it; in the order of their arrival. */
  #at(engine: number): Flight[] {
    const there: Flight[] = [];
    this.#flights.each((flight) => {
      if (flight.engine === engine) there.push(flight);
    });
    return there.sort((a, b) => a.row - b.row);
  }

  /** The connection breaks; what the engine sent before still comes. */
  #drop(flight: Flight): void {
    const { fleet, clock } = this.#host;
    const seen = fleet.outputTokens(clock, flight);
    if (seen === undefined) return;
    flight.tokensSeen = seen;
    fleet.abort(clock, flight);
    this.#breaks(flight);
  }

  /**
   * Without a fault of its own: answers stream and have a head, a prompt computed for another engine has none before
   * its end.
   */
  #breaks(flight: Flight, fault: Fault = flight.leg === undefined ? "cut" : "connect"): void {
    this.#host.answer(this.#host.clock, { kind: "broke", flight, engine: flight.engine, fault });
  }

  /** A deadline that an engine's clock would miss. */
  #watchDeadline(flight: Flight): void {
    const { deadlineAt, engine } = flight;
    if (deadlineAt === undefined) return;
    this.#host.later(Math.max(this.#host.clock, deadlineAt), { kind: "gave-up", flight, engine });
  }

  /** Takes a request from its engine; false where it is not there, for its answer may be on the way. */
  takeBack(flight: Flight): boolean {
    const aborted = this.#host.fleet.abort(this.#host.clock, flight);
    return aborted || this.#held.get(flight.engine)?.includes(flight) === true;
  }
}
