import { assert } from "#core/assert.ts";
import type { Decision } from "#core/decision.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input } from "#core/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import type { Micros } from "#core/units.ts";
import { queueMicros } from "#engine/config.ts";
import type { FinishReason } from "#engine/request.ts";
import { Agenda } from "./agenda.ts";
import { type EngineEar, EngineEars } from "./engine-ears.ts";
import { EngineFleet, type EngineSpec } from "./engine-fleet.ts";
import { Flight } from "./flight.ts";
import { verifyEnd } from "./invariants.ts";
import { type Ending, Outcomes } from "./outcomes.ts";
import { CacheCopies } from "./signal/cache-copies.ts";
import { SignalFeed } from "./signal/signal-feed.ts";
import type { SimulationEvent } from "./simulation-event.ts";
import type { FleetEvent, SimulationOptions } from "./simulation-options.ts";
import type { SimulatedRequest } from "./source/arrival-source.ts";

const PROGRESS_EVENTS = 65_536;

/**
 * A cluster in virtual time: the twin of the live request path. A request arrives, is admitted, is routed by the same
 * Router, reaches its engine, and its first token and its end come back; signals reach the router as late as they do
 * live. Engines advance in the order of their events, so a decision at t sees what engines did before t and nothing of
 * what they do at t. Same options, same bytes.
 */
export class Simulation implements EngineEar {
  readonly outcomes: Outcomes = new Outcomes();
  readonly fleet: EngineFleet = new EngineFleet();
  readonly ears: EngineEars;
  readonly router: Router;
  readonly #options: SimulationOptions;
  readonly #agenda: Agenda;
  readonly #signals: SignalFeed;
  readonly #copies: CacheCopies | undefined;
  /** Requests in each engine, where the fleet may change. */
  readonly #aboard: Set<Flight>[] = [];
  #past = false;
  clock: Micros = 0;
  /** Requests that have arrived and not ended. */
  open = 0;
  events = 0;
  /** Requests that admission refused, by its reason, and times that it asked one to wait. */
  readonly rejections: Map<string, number> = new Map();
  delays = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#agenda = new Agenda(options.fleetEvents ?? []);
    const { prefixes } = options;
    this.ears = new EngineEars(this.outcomes, this, options);
    this.#copies = prefixes.kind === "engine-caches" ? new CacheCopies(prefixes.delayMicros, this.fleet) : undefined;
    const index = this.#copies ?? (prefixes.kind === "index" ? prefixes.create(this.fleet) : new ApproximateIndex());
    this.router = new Router({ ...options.router, index, keepsBreakdowns: options.observe !== undefined });
    this.#signals = new SignalFeed(options.signals, options.router.seed, this.fleet, this.ears, {
      later: (at, take) => this.#agenda.push(at, { kind: "signal", take }),
      quietUntil: () => this.#quietUntil(),
      observed: (at, endpoint, load) => this.#accept({ kind: "load-observed", at, endpoint, load }),
    });
    for (const spec of options.engines) this.#join(0, spec);
    while (this.#agenda.nextAt < 0) this.#take(this.#agenda.pop());
  }

  run(): void {
    const { arrivals, horizonMicros, progress } = this.#options;
    for (;;) {
      const arrivalAt = arrivals.nextAt();
      if (this.open === 0 && arrivalAt === Infinity) break;
      const at = Math.min(arrivalAt, this.#agenda.nextAt);
      const engineAt = this.fleet.nextAt;
      const next = Math.min(at, engineAt);
      if (next === Infinity || next > horizonMicros) break;
      assert(next >= this.clock, "the clock never runs backwards");
      this.clock = next;
      if (at > engineAt) this.fleet.advanceFirst();
      else if (arrivalAt === at) this.#arrived(arrivals.take());
      else this.#take(this.#agenda.pop());
      this.events++;
      if (this.events % PROGRESS_EVENTS === 0) progress?.(next, this.outcomes.length, this.outcomes.length - this.open);
    }
    // The run is over: nothing that is still told waits.
    this.#past = true;
    if (this.#options.atHorizon === "told") this.fleet.tellSettled();
    this.outcomes.trim();
    if (this.#options.check) verifyEnd(this);
  }

  #arrived(request: SimulatedRequest): void {
    const flight = new Flight(this.outcomes.open(request), request);
    this.open++;
    this.#soon(this.#options.latency.admissionMicros, { kind: "admit", flight });
  }

  /** Without a delay, straight away: nothing else can come between, unless admission looks at more than one arrival. */
  #soon(delay: Micros, event: SimulationEvent): void {
    if (delay === 0 && this.#options.admission === undefined) this.#take(event);
    else this.#agenda.push(this.clock + delay, event);
  }

  /** Until then nothing but the reading of gauges happens. */
  #quietUntil(): Micros {
    if (this.open > 0 || this.fleet.nextAt < Infinity) return this.clock;
    return Math.min(this.#options.arrivals.nextAt(), this.#agenda.quietUntil);
  }

  #take(event: SimulationEvent): void {
    switch (event.kind) {
      case "fleet":
        return this.#change(event.change);
      case "admit":
        return this.#admit(event.flight);
      case "route":
        return this.#route(event.flight, { kind: "request-arrived", at: this.clock, request: event.flight.route });
      case "deliver":
        // The endpoint may have left while the request was on its way, and another have been chosen.
        return event.flight.engine === event.engine ? this.#deliver(event.flight) : undefined;
      case "signal":
        return event.take(this.clock);
      case "first-token":
        if (event.flight.closed) return;
        this.#accept({ kind: "first-token", at: this.clock, requestId: event.flight.id });
        return this.#progressLater(event.flight);
      case "progress":
        return this.#progress(event.flight);
      case "over":
        return this.#close(event.flight, event.outcome);
      case "ended":
        this.#close(event.flight, event.outcome);
        return this.#ended(event.flight, true, event.status);
    }
  }

  #admit(flight: Flight): void {
    const { admission, priority, latency } = this.#options;
    this.#signals.beforeDecision(this.clock);
    this.#copies?.advance(this.clock);
    const verdict = admission?.decide(flight.route, this.clock);
    if (verdict?.action === "delay") {
      this.delays++;
      this.#agenda.push(this.clock + Math.max(1, verdict.micros), { kind: "admit", flight });
      return;
    }
    if (verdict?.action === "reject") {
      this.rejections.set(verdict.reason, (this.rejections.get(verdict.reason) ?? 0) + 1);
      this.#ended(flight, false, "rejected");
      return;
    }
    if (priority !== undefined) {
      flight.priority = priority.priorityOf(flight.route, this.clock);
      flight.route = { ...flight.route, priority: flight.priority };
      this.outcomes.priority[flight.row] = flight.priority;
    }
    this.#soon(latency.routingMicros, { kind: "route", flight });
  }

  #route(flight: Flight, input: Input & { kind: "request-arrived" | "request-retried" }): void {
    this.#signals.beforeDecision(this.clock);
    const decision = this.router.accept(input, this.#options.forced?.get(flight.id));
    this.#options.observe?.(input, decision);
    if (decision.kind === "rejected") {
      this.#close(flight, "refused");
      this.#ended(flight, true, decision.attempt > 1 ? "lost" : "unplaced");
      return;
    }
    flight.engine = this.fleet.numberOf(decision.endpoint);
    this.outcomes.endpoint[flight.row] = flight.engine;
    this.outcomes.attempts[flight.row] = decision.attempt;
    this.outcomes.expectedTokens[flight.row] = decision.hitTokens;
    this.#aboard[flight.engine]?.add(flight);
    this.#soon(this.#options.latency.requestMicros, { kind: "deliver", flight, engine: flight.engine });
  }

  #deliver(flight: Flight): void {
    flight.lanes = flight.source.engineLanes(this.fleet.blockTokens(flight.engine));
    const { modelTokensMax, queueDelay } = this.fleet.specs[flight.engine]!.config;
    // As vLLM, which refuses what might not end within the model's length.
    const fits = flight.promptTokens + (flight.route.outputTokensMax ?? 0) <= modelTokensMax;
    const submitted = fits ? this.fleet.submit(this.clock, flight) : "too-long";
    if (submitted === "queued") return;
    assert(submitted !== "duplicate", "a request is submitted to an engine once");
    this.#aboard[flight.engine]?.delete(flight);
    const status = submitted === "expired" ? "timed-out" : submitted;
    const ended = { kind: "ended", flight, outcome: submitted === "expired" ? "aborted" : "refused", status } as const;
    if (this.#options.over === "answered") return this.#answer(this.clock, ended);
    this.#agenda.push(this.clock + queueMicros(queueDelay, flight.promptTokens), ended);
  }

  #progressLater(flight: Flight): void {
    const { progressMicros = Infinity } = this.#options;
    if (progressMicros < Infinity) this.#agenda.push(this.clock + progressMicros, { kind: "progress", flight });
  }

  #progress(flight: Flight): void {
    const outputTokens = flight.closed ? undefined : this.fleet.outputTokens(this.clock, flight);
    if (outputTokens === undefined) return;
    this.#accept({ kind: "progress", at: this.clock, requestId: flight.id, outputTokens });
    this.#progressLater(flight);
  }

  /** An engine made a request's first token. */
  firstToken(at: Micros, flight: Flight): void {
    this.#answer(at, { kind: "first-token", flight });
  }

  /** An engine gave a request's place back, at the latest when its answer is complete. */
  released(at: Micros, flight: Flight): void {
    if (this.#options.over === "released") this.#answer(at, { kind: "over", flight, outcome: "ok" });
  }

  /** An engine is done with a request. */
  finished(at: Micros, flight: Flight, reason: FinishReason): void {
    this.#aboard[flight.engine]?.delete(flight);
    if (reason === "abort") return;
    const { latency } = this.#options;
    const { row } = flight;
    const answered = reason !== "deadline";
    this.outcomes.end(row, answered ? (reason === "stop" ? "completed" : "length") : "timed-out");
    if (answered) {
      const outside = this.outcomes.outputTokens[row]! * latency.perOutputTokenMicros + latency.afterLastTokenMicros;
      this.outcomes.e2e[row] = flight.lastTokenAt + latency.answerMicros + outside - flight.source.arrivalAt;
    }
    this.#answer(at, { kind: "ended", flight, outcome: answered ? "ok" : "aborted" });
  }

  /** Without a delay, straight away: whatever else is due at that time was before what engines do then. */
  #answer(at: Micros, event: SimulationEvent): void {
    const { answerMicros } = this.#options.latency;
    if ((answerMicros === 0 && at === this.clock) || this.#past) this.#take(event);
    else this.#agenda.push(at + answerMicros, event);
  }

  #close(flight: Flight, outcome: Outcome): void {
    if (flight.closed) return;
    flight.closed = true;
    const [row, ok] = [flight.row, outcome === "ok"];
    this.#accept({
      kind: "request-finished",
      at: this.clock,
      requestId: flight.id,
      outcome,
      promptTokens: ok ? flight.promptTokens : undefined,
      cachedTokens: ok ? this.outcomes.cachedTokens[row]! : undefined,
      outputTokens: ok ? this.outcomes.outputTokens[row]! : undefined,
      ...(ok && flight.answered),
    });
  }

  #ended(flight: Flight, admitted: boolean, status?: Ending): void {
    if (status !== undefined) this.outcomes.end(flight.row, status);
    this.open--;
    if (admitted) this.#options.admission?.ended(flight.route, this.clock);
    this.#options.arrivals.ended(flight.source, this.clock);
  }

  #accept(input: Input): Decision | undefined {
    const decision = this.router.accept(input);
    this.#options.observe?.(input, decision);
    return decision;
  }

  #join(at: Micros, spec: EngineSpec): void {
    const number = this.fleet.size;
    this.fleet.add(spec, this.ears.sinkOf(number, spec.config, this.#copies));
    if (this.#options.fleetEvents !== undefined) this.#aboard[number] = new Set();
    this.#accept({ kind: "endpoint-joined", at, endpoint: spec.endpoint });
    this.#signals.joined(at, number);
  }

  #change(change: FleetEvent): void {
    if (change.kind === "endpoint-joined") {
      const config = this.#options.engineOf?.(change) ?? this.#options.engines[0]?.config;
      assert(config !== undefined, "an endpoint that joins has an engine's configuration");
      this.#join(change.at, { endpoint: change.endpoint, config });
      return;
    }
    this.#accept(change);
    if (change.kind === "endpoint-left") this.#left(this.fleet.numberOf(change.endpoint));
  }

  /** What was in an engine that went away is tried elsewhere, unless its client has part of the answer already. */
  #left(number: number): void {
    this.#signals.left(number);
    const aboard = [...(this.#aboard[number] ?? [])];
    this.#aboard[number]?.clear();
    for (const flight of aboard) {
      this.fleet.abort(this.clock, flight);
      if (flight.firstTokenAt >= 0) {
        this.#close(flight, "failed");
        this.#ended(flight, true, "lost");
        continue;
      }
      flight.engine = -1;
      this.#accept({ kind: "attempt-failed", at: this.clock, requestId: flight.id, fault: "cut" });
      this.#route(flight, { kind: "request-retried", at: this.clock, requestId: flight.id });
    }
  }
}
