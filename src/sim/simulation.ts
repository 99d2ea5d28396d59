import { assert } from "#core/base/assert.ts";
import type { Decision, Placed, Routed } from "#core/input/decision.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input, RequestAgain } from "#core/input/input.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import type { Micros } from "#core/base/units.ts";
import { queueMicros } from "#engine/config.ts";
import type { FinishReason } from "#engine/request.ts";
import { AdmissionGate } from "./admission-gate.ts";
import { Agenda } from "./agenda.ts";
import { type EngineListener, EngineObserver } from "./path/engine-observer.ts";
import { EngineFleet } from "./fleet/engine-fleet.ts";
import { aheadOfFlights, ONWARD, STAGE_PERFORMERS } from "./stage-performers.ts";
import { type FaultHost, FaultDesk } from "./fault/fault-desk.ts";
import { mayFail } from "./fault/is-fault.ts";
import { type ChangeHost, FleetChanges } from "./scaling/fleet-changes.ts";
import { Flight } from "./path/flight.ts";
import { type FlightHost, FlightPaths } from "./path/flight-paths.ts";
import { type Ending, Outcomes } from "./result/outcomes.ts";
import { progress, progressLater } from "./progress-report.ts";
import { RouterGroup } from "./routers/router-group.ts";
import { RolloutLooks } from "./rollout-looks.ts";
import { type RoutingHost, RequestDispatcher } from "./request-dispatcher.ts";
import { CacheCopies } from "./signal/cache-copies.ts";
import { lookingInto } from "./signal/looking-into.ts";
import { ScalingController, type ScalingHost } from "./scaling/scaling-controller.ts";
import { kvEventFeed } from "./signal/kv-event-feed.ts";
import { SignalFeed } from "./signal/signal-feed.ts";
import { signalHost } from "./signal/signal-host.ts";
import type { SimulationEvent } from "./path/simulation-event.ts";
import type { AheadOfFlights, SimulatedStage, StagedOptions } from "./path/stage-performer.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";
import type { SimulatedRequest } from "./setting/arrival-source.ts";

const PROGRESS_EVENTS = 65_536;

/**
 * A cluster in virtual time: the twin of the live request path. A request arrives, is admitted, is routed by the same
 * Router, reaches its engine, and its first token and its end come back; signals reach the router as late as they do
 * live. Engines advance in the order of their events, so a decision at t sees what engines did before t and nothing of
 * what they do at t. Same options, same bytes.
 */
export class Simulation implements EngineListener, FlightHost, FaultHost, ChangeHost, RoutingHost, ScalingHost {
  readonly outcomes: Outcomes = new Outcomes();
  readonly fleet: EngineFleet = new EngineFleet();
  readonly observer: EngineObserver;
  readonly router: RouterGroup;
  readonly #options: SimulationOptions;
  readonly #agenda: Agenda;
  readonly signals: SignalFeed;
  readonly #copies: CacheCopies | undefined;
  readonly ahead: AheadOfFlights;
  readonly paths: FlightPaths;
  /** Where something is to fail. */
  readonly desk: FaultDesk | undefined;
  readonly changes: FleetChanges;
  readonly #looks: RolloutLooks;
  readonly scaling: ScalingController | undefined;
  /** Of all requests, brought by whoever asks. */
  readonly stages: readonly SimulatedStage[];
  #past = false;
  /** Time of the next arrival; NaN where something ended since it was asked for, and it is asked for again. */
  #arrivalAt: Micros = NaN;
  /** What is next in a request's life comes at once where it takes no time: nothing can come between. */
  readonly #atOnce: { readonly admission: boolean; readonly routing: boolean; readonly request: boolean };
  clock: Micros = 0;
  /** Requests that have arrived and not ended. */
  open = 0;
  events = 0;
  readonly gate: AdmissionGate;
  readonly routing: RequestDispatcher;

  constructor(options: StagedOptions) {
    this.#options = options;
    const { admissionMicros, routingMicros, requestMicros } = options.latency;
    // Admission may look at more than one arrival.
    const alone = options.admission === undefined;
    this.#atOnce = {
      admission: alone && admissionMicros === 0,
      routing: alone && routingMicros === 0,
      request: alone && requestMicros === 0,
    };
    this.#agenda = new Agenda(options.fleetEvents ?? []);
    this.gate = new AdmissionGate(options, this.outcomes);
    this.routing = new RequestDispatcher(this, options);
    const { prefixes } = options;
    this.observer = new EngineObserver(this.outcomes, this, options);
    this.#copies = prefixes.kind === "engine-caches" ? new CacheCopies(prefixes.delayMicros, this.fleet) : undefined;
    const single = this.#copies ?? (prefixes.kind === "index" ? prefixes.create(this.fleet) : undefined);
    const caches = options.engineCaches && new CacheCopies(options.engineCaches.delayMicros, this.fleet);
    this.router = new RouterGroup(caches ? lookingInto(options, caches, this.fleet) : options, single, (at, take) =>
      this.#agenda.push(at, { kind: "peer-news", take }),
    );
    const feeds = signalHost(this, options.rules ?? PATH_RULES, () => this.#quietUntil());
    this.signals = new SignalFeed(options.signals, options.router.seed, this.fleet, this.observer, feeds);
    this.ahead = aheadOfFlights(options, this);
    this.paths = new FlightPaths(options.rules ?? PATH_RULES, ONWARD, this);
    this.desk = mayFail(options) ? new FaultDesk(options.rules ?? PATH_RULES, STAGE_PERFORMERS, this) : undefined;
    this.#looks = new RolloutLooks(this, options.rolloutLookMicros);
    const reports = kvEventFeed(prefixes, {
      clock: () => this.clock,
      later: (at, take) => this.#agenda.push(at, { kind: "signal", take }),
      accept: (input) => void this.accept(input),
      endpointOf: (engine) => this.fleet.specs[engine]!.endpoint.id,
    });
    this.changes = new FleetChanges(options, this, this.#copies ?? reports ?? caches, this.desk?.engines);
    for (const spec of options.engines) this.changes.join(0, spec);
    this.stages = (options.stages ?? []).map((open) => open(this, options));
    this.scaling = options.scaling && new ScalingController(options.scaling, options.engines, this);
    while (this.#agenda.nextAt < 0) this.#take(this.#agenda.pop());
  }

  run(): void {
    const { arrivals, horizonMicros, progress } = this.#options;
    for (;;) {
      if (Number.isNaN(this.#arrivalAt)) this.#arrivalAt = arrivals.nextAt();
      const arrivalAt = this.#arrivalAt;
      if (this.open === 0 && arrivalAt === Infinity) break;
      const at = Math.min(arrivalAt, this.#agenda.nextAt);
      const engineAt = this.fleet.nextAt;
      const next = Math.min(at, engineAt);
      if (next === Infinity || next > horizonMicros) break;
      assert(next >= this.clock, "the clock never runs backwards");
      this.clock = next;
      if (at > engineAt) this.fleet.advanceFirst();
      else if (arrivalAt === at) {
        this.#arrivalAt = NaN;
        this.#arrived(arrivals.take());
      } else this.#take(this.#agenda.pop());
      if (++this.events % PROGRESS_EVENTS === 0)
        progress?.(next, this.outcomes.length, this.outcomes.length - this.open);
    }
    this.#past = true; // The run is over: nothing that is still reported waits.
    if (this.#options.atHorizon === "reported") this.fleet.reportSettled();
    this.outcomes.trim();
    if (this.#options.check) verifyEnd(this);
  }

  #arrived(request: SimulatedRequest): void {
    const flight = new Flight(this.outcomes.open(request), request, this.paths);
    this.open++;
    this.desk?.arrived(flight);
    for (const stage of this.stages) stage.arrived(flight);
    if (this.#atOnce.admission) this.#admit(flight);
    else this.#agenda.push(this.clock + this.#options.latency.admissionMicros, { kind: "admit", flight });
  }

  readonly later = (at: Micros, event: SimulationEvent): void => this.#agenda.push(at, event);
  /** Until then nothing but the reading of gauges happens. */
  #quietUntil(): Micros {
    if (this.open > 0 || this.fleet.nextAt < Infinity || this.desk?.troubled === true) return this.clock;
    return Math.min(this.#options.arrivals.nextAt(), this.#agenda.quietUntil);
  }

  #take(event: SimulationEvent): void {
    const options = this.#options;
    switch (event.kind) {
      case "fleet":
        return this.changes.take(event.change);
      case "admit":
        return this.#admit(event.flight);
      case "route":
        return this.routing.route(event.flight);
      case "deliver":
        return event.flight.engine === event.engine ? this.deliver(event.flight) : undefined; // else it goes elsewhere by now
      case "queue-turn":
        return this.routing.turn();
      case "waited-out":
        return this.routing.waitedOut(event.flight);
      case "signal":
      case "peer-news":
      case "judged":
      case "scale-check":
      case "replica-ready":
      case "stage":
        return event.take(this.clock);
      case "first-token":
        return this.#firstTokenHere(event.flight, event.engine);
      case "progress":
        return event.flight.engine === event.engine ? progress(this, options.progressMicros, event.flight) : undefined;
      case "over":
        return event.flight.engine === event.engine ? this.close(event.flight, event.outcome) : undefined;
      case "ended":
        return this.#endHere(event.flight, event.engine, event.outcome, event.status);
      case "look":
        return this.#looks.take(this.clock);
      case "broke":
      case "gave-up":
      case "sweep":
      case "return":
        return this.desk?.take(event);
    }
  }

  #firstTokenHere(flight: Flight, engine: number): void {
    if (flight.closed || flight.engine !== engine) return;
    this.paths.firstToken(flight);
    progressLater(this, this.#options.progressMicros, flight);
  }

  #endHere(flight: Flight, engine: number, outcome: Outcome, status: Ending | undefined): void {
    if (flight.engine !== engine) return;
    if (outcome === "ok") this.desk?.completed(flight, this.#options.latency.answerMicros);
    this.paths.ended(flight, outcome, status);
  }

  #admit(flight: Flight): void {
    this.signals.beforeDecision(this.clock);
    this.#copies?.advance(this.clock);
    const verdict = this.gate.admits(flight, this.clock);
    if (verdict === "admitted") {
      if (this.#atOnce.routing) return this.routing.route(flight);
      return this.#agenda.push(this.clock + this.#options.latency.routingMicros, { kind: "route", flight });
    }
    if (verdict === "refused") return this.ended(flight, "rejected", false);
    this.#agenda.push(this.clock + verdict, { kind: "admit", flight });
  }

  decide(input: RequestAgain): Placed {
    return this.routing.decide(input);
  }

  send(flight: Flight, decision: Routed): void {
    this.outcomes.expectedTokens[flight.row] = decision.heldTokens ?? decision.hitTokens;
    flight.engine = this.ahead.begin(flight, decision);
    if (decision.priority !== undefined) {
      flight.priority = decision.priority;
      this.outcomes.priority[flight.row] = decision.priority;
    }
    this.outcomes.attempts[flight.row] = decision.attempt;
    this.carry(flight);
  }

  carry(flight: Flight): void {
    flight.sent(this.clock);
    if (this.#atOnce.request) return this.deliver(flight);
    const { engine } = flight;
    this.#agenda.push(this.clock + this.#options.latency.requestMicros, { kind: "deliver", flight, engine });
  }

  deliver(flight: Flight): void {
    if (this.desk?.engines.meets(flight) === true) return;
    flight.asSent.hashes = flight.source.engineHashes(this.fleet.blockTokens(flight.engine));
    const { modelTokensMax, queueDelay } = this.fleet.specs[flight.engine]!.config;
    // As vLLM, which refuses what might not end within the model's length.
    const fits = flight.firstPromptTokens + (flight.route.outputTokensMax ?? 0) <= modelTokensMax;
    const submitted = fits ? this.fleet.submit(this.clock, flight) : "too-long";
    if (submitted === "queued") return;
    assert(submitted !== "duplicate", "a request is submitted to an engine once");
    const status = submitted === "expired" ? "timed-out" : submitted;
    const outcome = submitted === "expired" ? "aborted" : "refused";
    const ended = { kind: "ended", flight, engine: flight.engine, outcome, status } as const;
    if (this.#options.over === "answered") return this.answer(this.clock, ended);
    this.#agenda.push(this.clock + queueMicros(queueDelay, flight.promptTokens), ended);
  }

  /** An engine made a request's first token. */
  firstToken(at: Micros, flight: Flight): void {
    if (this.#isHere(at)) this.#firstTokenHere(flight, flight.engine);
    else this.answer(at, { kind: "first-token", flight, engine: flight.engine });
  }

  /** An engine gave a request's place back, at the latest when its answer is complete. */
  released(at: Micros, flight: Flight): void {
    if (this.#options.over === "released")
      this.answer(at, { kind: "over", flight, engine: flight.engine, outcome: "ok" });
  }

  /** An engine is done with a request. */
  finished(at: Micros, flight: Flight, reason: FinishReason): void {
    if (reason === "abort") return;
    for (const stage of this.stages) if (stage.holds(at, flight, reason)) return;
    const answered = reason !== "deadline";
    this.observer.ended(flight, reason, this.#options.latency);
    const outcome = answered ? "ok" : "aborted";
    if (this.#isHere(at)) this.#endHere(flight, flight.engine, outcome, undefined);
    else this.answer(at, { kind: "ended", flight, engine: flight.engine, outcome });
  }

  answer(at: Micros, event: SimulationEvent): void {
    if (this.#isHere(at)) this.#take(event);
    else this.#agenda.push(at + this.#options.latency.answerMicros, event);
  }

  /** Without a delay, straight away: whatever else is due at that time was before what engines do then. */
  #isHere(at: Micros): boolean {
    return (this.#options.latency.answerMicros === 0 && at === this.clock) || this.#past;
  }

  close(flight: Flight, outcome: Outcome, outputTokens?: number): void {
    if (flight.closed) return;
    flight.closed = true;
    const ok = outcome === "ok";
    const tokens = ok ? this.outcomes.outputTokens[flight.row]! : outputTokens;
    const finished = {
      kind: "request-finished",
      at: this.clock,
      requestId: flight.id,
      outcome,
      promptTokens: ok ? flight.source.route.promptTokens : undefined,
      cachedTokens: ok && flight.timesElsewhere === 0 ? this.outcomes.cachedTokens[flight.row]! : undefined,
      outputTokens: tokens === undefined ? undefined : tokens * flight.sequences,
    } as const;
    const answerHashes = ok ? flight.source.answerHashes?.() : undefined;
    this.accept(answerHashes === undefined ? finished : { ...finished, answerHashes });
  }

  ended(flight: Flight, status?: Ending, admitted = true): void {
    if (status !== undefined) this.outcomes.end(flight.row, status);
    this.open--;
    this.ahead.dropped(flight);
    this.desk?.departed(flight);
    if (admitted) this.#options.admission?.ended(flight.route, this.clock, flight);
    this.#options.arrivals.ended(flight.source, this.clock);
    this.#arrivalAt = NaN;
  }

  accept(input: Input): Decision | undefined {
    const decision = this.router.accept(input);
    this.#options.observe?.(input, decision);
    this.desk?.probes.follow(input);
    this.#looks.follow(input);
    this.routing.accepted();
    return decision;
  }
}

/** What must hold at the end of every run; the engines verify their blocks after every step. */
function verifyEnd({ outcomes, open, router, clock, scaling, ahead }: Simulation): void {
  scaling?.verify();
  ahead.verify(open);
  let unended = 0;
  for (let row = 0; row < outcomes.length; row++) {
    if (outcomes.statusOf(row) === "open") unended++;
    if (!outcomes.isCompleted(row)) continue;
    const { arrivalAt, queueDelay, ttft, e2e, outputTokens } = outcomes;
    assert(queueDelay[row]! >= 0 && ttft[row]! > 0, "a request waits, is admitted, and then has its first token");
    assert(e2e[row]! >= ttft[row]!, "the last token does not come before the first");
    assert(arrivalAt[row]! <= clock, "nothing arrives after the end");
    assert(outputTokens[row]! > 0, "a request that was served has an answer");
  }
  assert(unended === open, "every request has exactly one end, or none yet");
  if (open > 0) return;
  assert(router.inFlight === 0, "the router has no request that is over");
  assert(router.openCharges === 0, "nothing is charged when nothing is in flight");
  assert(router.strayInputs === 0, "the router is notified of requests in flight only");
}
