import { assert } from "#core/assert.ts";
import type { Decision, Placed, Routed } from "#core/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import { type Input, isAsking, type RequestAgain } from "#core/input.ts";
import { afterBreak } from "#core/retry/after-break.ts";
import { type AttemptHost, type StageFailed, afterFault } from "#core/retry/after-fault.ts";
import type { HedgeHost } from "#core/retry/ask-hedge.ts";
import { HedgeBudget } from "#core/retry/hedge-budget.ts";
import type { PathRules } from "#core/retry/path-rules.ts";
import { RetryPolicy } from "#core/retry/retry-policy.ts";
import {
  FAULT_OF_TROUBLE,
  faultOfLeaving,
  type Taker,
  type TakerKind,
  takerOf,
  troubleSince,
  waitVerdict,
} from "#core/retry/wait-verdict.ts";
import { SlotList } from "#core/slot-list.ts";
import type { Micros } from "#core/units.ts";
import type { Flight } from "../flight.ts";
import type { Ending, Outcomes } from "../outcomes.ts";
import { newPathCounts, type PathCounts } from "../result/path-counts.ts";
import type { RouterGroup } from "../router-group.ts";
import type { SimulationEvent } from "../simulation-event.ts";
import { type EngineFaultHost, EngineFaults } from "./engine-faults.ts";
import { HedgeDesk, type HedgeDeskHost } from "./hedge-desk.ts";
import { FleetProbes, type ProbeHost } from "./fleet-probes.ts";

/** The simulation as the desk sees it. */
export interface FaultHost extends ProbeHost, EngineFaultHost, HedgeDeskHost {
  readonly router: RouterGroup;
  readonly handoffs: { dropped(flight: Flight): void };
  readonly outcomes: Outcomes;
  accept(input: Input): Decision | undefined;
  /** A retry or a continuation, which whoever counterfactually forces decisions may force as well. */
  decide(input: RequestAgain, flight: Flight): Placed;
  send(flight: Flight, decision: Routed): void;
  close(flight: Flight, outcome: Outcome, outputTokens?: number): void;
  ended(flight: Flight, status: Ending): void;
}

type FaultEvent = Extract<SimulationEvent, { readonly kind: "broke" | "gave-up" | "sweep" | "return" }>;

/**
 * What becomes of requests where engines fail, by the core's rules: the simulated side of what live/upstream does with
 * sockets. Engines that are killed, hang or turn requests down do so here, and probes find them so.
 */
export class FaultDesk implements AttemptHost, HedgeHost {
  readonly counts: PathCounts = newPathCounts();
  readonly retries: RetryPolicy;
  readonly probes: FleetProbes;
  readonly engines: EngineFaults;
  readonly hedges: HedgeBudget;
  readonly hedging: HedgeDesk;
  readonly #rules: PathRules;
  readonly #host: FaultHost;
  readonly #flights = new SlotList<Flight>();
  #sweeps = false;

  constructor(rules: PathRules, host: FaultHost) {
    this.#rules = rules;
    this.#host = host;
    this.retries = new RetryPolicy(rules.retry);
    this.probes = new FleetProbes(rules, host);
    this.hedges = new HedgeBudget(rules.hedge);
    this.hedging = new HedgeDesk(host, this.#flights, this.counts);
    this.engines = new EngineFaults(host, this.#flights, (engine) => this.probes.replaced(engine));
  }

  now(): Micros {
    return this.#host.clock;
  }

  hasTaker(requestId: string): boolean {
    return this.#host.router.hasTaker(this.#host.clock, requestId);
  }

  accept(input: StageFailed): void;
  accept(input: RequestAgain): Placed;
  accept(input: StageFailed | RequestAgain): Decision | undefined {
    if (!isAsking(input)) return this.#host.accept(input);
    assert(this.#retried !== undefined, "a request is retried at the desk");
    return this.#host.decide(input, this.#retried);
  }

  /** The request that `accept` speaks of. */
  #retried: Flight | undefined;

  /** A request was sent: it earns its part of a retry, and of a second engine. */
  earnRetry(): void {
    this.retries.earn();
    this.hedges.earn();
  }

  /** Some engine is not as it should be: probes are not all alike. */
  get troubled(): boolean {
    return this.probes.troubled;
  }

  arrived(flight: Flight): void {
    this.#flights.add(flight);
    if (this.#sweeps) return;
    this.#sweeps = true;
    this.#host.later(this.#host.clock + this.#rules.sweepMicros, { kind: "sweep" });
  }

  /** A request was sent to an engine. */
  sent(flight: Flight): void {
    flight.sentAt = this.#host.clock;
    flight.quietSince = this.#host.clock;
  }

  departed(flight: Flight): void {
    this.#flights.remove(flight);
  }

  firstToken(flight: Flight): void {
    if (flight.resuming) this.retries.refund();
    flight.begun = true;
    flight.resuming = false;
    flight.progressed = true;
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
        return isUnderWay(event) ? this.#broke(event.flight, event.fault) : undefined;
      case "gave-up":
        return isUnderWay(event) ? this.#gaveUp(event.flight) : undefined;
      case "sweep":
        return this.#sweep();
      case "return":
        return this.probes.asks(event.engine, event.attempt);
    }
  }

  /** The gateway sees a fault. */
  #broke(flight: Flight, fault: Fault): void {
    if (flight.hedgeOf !== undefined) return this.hedging.failed(flight, fault);
    if (flight.begun) this.#severed(flight, fault);
    else this.#attemptFailed(flight, fault);
  }

  /** The client has a part of the answer: it goes on elsewhere, or is cut. */
  #severed(flight: Flight, fault: Fault): void {
    if (!this.#continues(flight)) return this.#cut(flight, fault);
    const { id: requestId, tokensOfAll: outputTokens, continuations } = flight;
    this.#retried = flight;
    const broken = { requestId, fault, outputTokens, ...flight.blocksOf(outputTokens), continuations };
    const after = afterBreak(this, broken);
    if (after.kind === "give-up") return this.#cut(flight, fault);
    this.counts.continuations++;
    this.#host.handoffs.dropped(flight);
    flight.goOn();
    this.#host.send(flight, after.decision);
  }

  /** One answer that streams, as every simulated one does. */
  #continues(flight: Flight): boolean {
    const lacksSome = flight.tokensOfAll < flight.source.outputTokens;
    return this.#rules.retry.continuationsMax > 0 && flight.route.sequences === 1 && lacksSome;
  }

  #cut(flight: Flight, fault: Fault): void {
    this.counts.cuts++;
    if (fault === "timeout") this.counts.timeouts++;
    this.#host.close(flight, fault === "timeout" ? "timeout" : "failed", flight.tokensOfAll);
    this.#host.ended(flight, fault === "timeout" ? "timed-out" : "cut");
  }

  #attemptFailed(flight: Flight, fault: Fault): void {
    const { counts } = this;
    counts.faults[fault] = (counts.faults[fault] ?? 0) + 1;
    if (flight.hedge !== undefined && fault !== "timeout") {
      counts.retries++;
      return this.hedging.takesOver(flight, fault);
    }
    this.hedging.drop(flight);
    this.#retried = flight;
    const after = afterFault(this, flight.id, fault, this.#host.outcomes.attempts[flight.row]!, flight.stage);
    this.#host.handoffs.dropped(flight);
    if (after.kind === "retry") {
      counts.retries++;
      flight.reset();
      this.#host.outcomes.again(flight.row);
      return this.#host.send(flight, after.decision);
    }
    const late = fault === "timeout";
    if (late) counts.timeouts++;
    if (after.why === "budget") counts.retriesDenied++;
    this.#host.close(flight, late ? "timeout" : "failed");
    this.#host.ended(flight, late ? "timed-out" : "lost");
  }

  #gaveUp(flight: Flight): void {
    if (!this.engines.takeBack(flight)) return;
    if (flight.hedgeOf !== undefined) return this.hedging.failed(flight);
    this.#host.close(flight, "aborted", flight.tokensOfAll > 0 ? flight.tokensOfAll : undefined);
    this.#host.ended(flight, "timed-out");
  }

  #sweep(): void {
    const { hangs } = this.probes;
    hangs.sweepBegins();
    this.#flights.each((flight) => {
      if (flight.engine >= 0 && !flight.closed && flight.hedgeOf === undefined) this.#look(flight);
    });
    hangs.sweepEnds(this.#host.clock);
    this.#sweeps = this.#flights.size > 0;
    if (this.#sweeps) this.#host.later(this.#host.clock + this.#rules.sweepMicros, { kind: "sweep" });
  }

  /** A second engine that may fail. */
  #lookAtHedge(hedge: Flight): void {
    const { clock: at } = this.#host;
    const endpoint = this.#endpointOf(hedge);
    this.probes.hangs.waits(endpoint, "stream", hedge.quietSince);
    const found = this.probes.troubleOf(endpoint);
    hedge.trouble = troubleSince(hedge.trouble, found, at);
    if (found !== undefined) this.hedging.failed(hedge, FAULT_OF_TROUBLE[found]);
  }

  #look(flight: Flight): void {
    if (flight.hedge !== undefined) this.#lookAtHedge(flight.hedge);
    const { clock: at, fleet, router, outcomes } = this.#host;
    const { hangs } = this.probes;
    const endpoint = this.#endpointOf(flight);
    const seen = flight.begun && !flight.resuming ? (fleet.outputTokens(at, flight) ?? flight.tokensSeen) : 0;
    if (flight.progressed || seen > flight.tokensSeen) {
      flight.quietSince = at;
      hangs.answered(endpoint, at);
    } else {
      const hasToken = flight.begun && !flight.resuming;
      const promptTokens = hasToken ? 0 : flight.promptTokens - outcomes.expectedTokens[flight.row]!;
      hangs.waits(endpoint, hasToken ? "begun" : "stream", flight.quietSince, promptTokens);
    }
    flight.progressed = false;
    flight.tokensSeen = seen;
    const drains = router.isDraining(flight.id, endpoint);
    const found = this.probes.troubleOf(endpoint) ?? (drains ? "draining" : undefined);
    flight.trouble = troubleSince(flight.trouble, found, at);
    const times = flight.begun ? flight.continuations : outcomes.attempts[flight.row]!;
    const waiting = {
      at,
      // Engines know their requests' deadlines here, and drop them in time.
      deadlineAt: Infinity,
      arrivedAt: flight.source.arrivalAt,
      quietMicros: at - flight.quietSince,
      begun: flight.begun && !flight.resuming,
      continues: this.#continues(flight),
      held: false,
      resuming: flight.resuming,
      movedTimes: mayMoveAgain(flight) ? times - (flight.begun ? 0 : 1) : 0,
      streams: true,
      blocked: false,
      trouble: flight.trouble,
      lateMicros: mayHedge(flight) ? at - flight.sentAt : 0,
    };
    const taker = (kind: TakerKind): Taker => {
      if (flight.hedge !== undefined) return "free";
      const denied = flight.begun ? this.retries.continuationDenial("hung", times) : this.retries.denial("hung", times);
      return takerOf(denied, () => router.hasTaker(at, flight.id, kind));
    };
    const verdict = waitVerdict(waiting, this.#rules.waits, taker);
    if (verdict === "wait" || verdict === "stalled") return;
    if (verdict === "hedge") {
      this.#retried = flight;
      return this.hedging.begin(flight, this);
    }
    if (verdict === "move") this.counts.moved[found ?? "late"]++;
    fleet.abort(at, flight);
    this.#broke(flight, verdict === "time-out" ? "timeout" : faultOfLeaving(verdict, flight.trouble));
  }

  /** What has no token yet there goes to another engine, as if that one had turned it down as it leaves. */
  redirect(engine: number): void {
    const leaving: Flight[] = [];
    this.#flights.each((flight) => {
      if (flight.engine === engine && !flight.begun && !flight.closed) leaving.push(flight);
    });
    for (const flight of leaving) {
      this.#host.fleet.abort(this.#host.clock, flight);
      this.#broke(flight, "draining");
    }
  }

  #endpointOf(flight: Flight): EndpointId {
    return this.#host.fleet.specs[flight.engine]!.endpoint.id;
  }
}

/** As in the gateway: nothing came, and one engine does all of it. */
function mayHedge({ hedgeAsked, begun, resuming, leg, fetch, judged }: Flight): boolean {
  return !hedgeAsked && !begun && !resuming && leg === undefined && fetch === undefined && judged === undefined;
}

/** As in the gateway: no token came, one engine does all of it, and nobody judges it. */
function mayMoveAgain({ begun, resuming, hedge, leg, fetch, judged, escalated }: Flight): boolean {
  const isOne = hedge === undefined && leg === undefined && fetch === undefined;
  return isOne && (resuming || (!begun && judged === undefined && !escalated));
}

function isUnderWay({ flight, engine }: { readonly flight: Flight; readonly engine: number }): boolean {
  return !flight.closed && flight.engine === engine;
}
