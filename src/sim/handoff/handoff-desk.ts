import { assert } from "#core/base/assert.ts";
import type { Routed } from "#core/input/decision.ts";
import { PrefillElsewhere, type PrefillHost } from "#core/path/prefill/prefill-elsewhere.ts";
import type { Micros } from "#core/base/units.ts";
import type { BlockFetch, Hold } from "#engine/block-fetch.ts";
import type { Flight } from "../path/flight.ts";
import { PrefillLeg } from "../path/prefill-leg.ts";
import type { AheadHost, AheadOfFlights, StageFigures } from "../path/stage-performer.ts";
import type { SimulationOptions } from "../setting/simulation-options.ts";
import { TRANSFER_DEFAULTS, transferMicros, type TransferOptions } from "../setting/transfer-options.ts";

/**
 * Requests whose prompts are computed at one engine and answered at another, as the gateway does it with vLLM's NIXL
 * connector: the prompt's one token comes back, the request goes on to the other engine, which takes room for the
 * prompt and fetches the blocks; the first engine holds them until then. Where both are sent at once, the second one has
 * the request as soon as the prompt is computed, without a way through the gateway.
 */
export class HandoffDesk implements HandoffHost, AheadOfFlights {
  readonly counts = new HandoffCounts();
  readonly #options: TransferOptions;
  readonly #requestMicros: Micros;
  readonly #host: AheadHost;
  readonly #isAsked: boolean;
  #underWay = 0;

  constructor({ transfers = TRANSFER_DEFAULTS, latency, router }: SimulationOptions, host: AheadHost) {
    this.#options = transfers;
    this.#requestMicros = latency.requestMicros;
    this.#host = host;
    this.#isAsked = Object.values(router.profiles).some(({ disaggregation }) => disaggregation !== undefined);
  }

  begin(flight: Flight, decision: Routed): number {
    const { fleet, outcomes } = this.#host;
    const { prefill, colocated } = decision;
    const answers = fleet.numberOf(decision.endpoint);
    outcomes.endpoint[flight.row] = answers;
    if (colocated !== undefined) this.counts.colocated.set(colocated, (this.counts.colocated.get(colocated) ?? 0) + 1);
    flight.lacksStage(flight.ahead);
    flight.ahead = undefined;
    if (prefill === undefined) {
      outcomes.prefillEndpoint[flight.row] = -1;
      return answers;
    }
    this.counts.shared++;
    const engine = fleet.numberOf(prefill.endpoint);
    outcomes.prefillEndpoint[flight.row] = engine;
    outcomes.expectedTokens[flight.row] = prefill.heldTokens ?? prefill.hitTokens;
    flight.leg = new PrefillLeg(flight, engine, answers);
    flight.ahead = new PrefillElsewhere(decision, prefill, this.#hostOf(flight));
    flight.hasStage(flight.ahead);
    return engine;
  }

  held(at: Micros, leg: PrefillLeg, hold: Hold): void {
    leg.hold = hold;
    if (leg.flight.leg !== leg) return;
    leg.flight.fetch = new Handoff(leg, hold, at, this.#host.fleet.lifeOf(leg.engine), this);
  }

  computed(at: Micros, leg: PrefillLeg): void {
    const event = { kind: "stage", take: () => this.#computed(leg) } as const;
    if (stageOf(leg.flight).isTogether) this.#host.later(Math.max(at, this.#host.clock), event);
    else this.#host.answer(at, event);
  }

  #computed(leg: PrefillLeg): void {
    const { flight } = leg;
    if (flight.leg !== leg || flight.closed) return;
    leg.isComputed = true;
    const stage = stageOf(flight);
    stage.prefilled(leg.cachedTokens, true);
    if (stage.isTogether) this.sendOn(flight);
  }

  sendOn(flight: Flight): void {
    const { clock: at } = this.#host;
    const { answers } = flight.leg!;
    const stage = stageOf(flight);
    stage.sentOn();
    flight.leg = undefined;
    flight.engine = answers;
    flight.sent(at);
    const delay = stage.isTogether ? 0 : this.#requestMicros;
    this.#host.later(at + delay, { kind: "deliver", flight, engine: answers });
  }

  transfer(handoff: Handoff, tokens: number): Micros {
    const { clock, fleet } = this.#host;
    const { engine } = handoff.leg;
    const { blockTokens, kvBytesPerToken } = fleet.specs[engine]!.config;
    // Blocks go whole.
    const bytes = Math.ceil(tokens / blockTokens) * blockTokens * kvBytesPerToken;
    this.#underWay++;
    const micros = transferMicros(this.#options, bytes, this.#underWay);
    const { counts } = this;
    counts.transfers++;
    counts.bytes += bytes;
    counts.transferMicros += micros;
    counts.heldMicros += Math.max(0, clock - handoff.heldAt);
    this.#host.later(clock + micros, { kind: "stage", take: () => this.#handedOver(handoff) });
    return micros;
  }

  /** The time of a transfer is over: the blocks have another owner, or none. */
  #handedOver(handoff: Handoff): void {
    this.#underWay--;
    this.counts.ended++;
    const { flight } = handoff.leg;
    const came = handoff.state === "moving" && this.#isThere(handoff);
    this.#letGo(handoff, came);
    if (came) return;
    this.counts.failed++;
    if (this.#options.failurePolicy === "recompute" || flight.fetch !== handoff || flight.closed) return;
    stageOf(flight).notFetched();
    this.#host.fleet.abort(this.#host.clock, flight);
    this.#host.answer(this.#host.clock, { kind: "broke", flight, engine: flight.engine, fault: "status" });
  }

  /** As the stage of a request sees the simulation. */
  #hostOf(flight: Flight): PrefillHost {
    const host = this.#host;
    return {
      router: host.paths.router,
      routeId: flight.id,
      now: () => host.clock,
      dispatch: (event) => flight.path.dispatch(event),
      strand: () => this.#stranded(flight),
    };
  }

  /** The engine that answers knows of blocks that it will not fetch: they are given back at once. */
  #stranded(flight: Flight): void {
    const { leg, engine } = flight;
    const fetch = handoffOf(flight);
    const isKnown = leg === undefined && this.#host.fleet.conditions[engine] === "serving";
    if (fetch?.state === "held" && isKnown) this.#letGo(fetch, false);
  }

  leaves(flight: Flight, { endpoint }: Routed): void {
    if (flight.ahead !== undefined) stageOf(flight).close(endpoint);
    this.dropped(flight);
  }

  /** Of what was computed for it and is still held, the lease runs out. */
  dropped(flight: Flight): void {
    const fetch = handoffOf(flight);
    flight.leg = undefined;
    flight.fetch = undefined;
    if (fetch?.state !== "held") return;
    const { clock } = this.#host;
    const expiresAt = Math.max(clock, fetch.heldAt + this.#options.leaseMicros);
    this.#host.later(expiresAt, { kind: "stage", take: () => this.#expired(fetch) });
  }

  #expired(handoff: Handoff): void {
    if (handoff.state !== "held") return;
    this.counts.expired++;
    this.#letGo(handoff, false);
  }

  /** The prefill engine gives the blocks back, if it is still the one that held them. */
  #letGo(handoff: Handoff, owned: boolean): void {
    const { clock, fleet } = this.#host;
    const there = this.#isThere(handoff);
    const hold = handoff.ends(owned);
    if (hold === undefined || !there) return;
    assert(fleet.giveBack(clock, handoff.leg.engine, hold), "blocks are given back once");
  }

  #isThere({ leg, life }: Handoff): boolean {
    const { fleet } = this.#host;
    const condition = fleet.conditions[leg.engine];
    return condition !== "dead" && condition !== "vanished" && fleet.lifeOf(leg.engine) === life;
  }

  figures(): StageFigures | undefined {
    return this.#isAsked ? { name: "handoffs", figures: this.counts.figures() } : undefined;
  }

  /** Nothing moves for ever, and who holds blocks holds them for somebody. */
  verify(open: number): void {
    const { transfers, ended } = this.counts;
    assert(this.#underWay === transfers - ended, "every transfer has one end, or none yet");
    assert(open > 0 || ended === transfers, "no transfer is under way when all requests are over");
  }
}

/** The stage of a flight whose prompt is computed elsewhere. */
function stageOf({ ahead }: Flight): PrefillElsewhere {
  assert(ahead instanceof PrefillElsewhere, "its decision names who computes the prompt");
  return ahead;
}

function handoffOf({ fetch }: Flight): Handoff | undefined {
  return fetch instanceof Handoff ? fetch : undefined;
}

/** What a handoff needs of the simulation. */
export interface HandoffHost {
  /** A transfer of so many tokens begins; returns how long it takes, and has `handedOver` called when that is over. */
  transfer(handoff: Handoff, tokens: number): Micros;
}

/**
 * - held: the prefill engine has the prompt's blocks and keeps them
 * - moving: the engine that answers has taken room, and they are on their way
 * - owned: they are there, and the prefill engine has let go of them
 * - lost: neither has them
 */
type State = "held" | "moving" | "owned" | "lost";

/** The blocks of one prompt between two engines: at any time exactly one of them has them, or none. */
export class Handoff implements BlockFetch {
  readonly leg: PrefillLeg;
  readonly heldAt: Micros;
  /** Which life of the prefill engine holds them. */
  readonly life: number;
  readonly #host: HandoffHost;
  #state: State = "held";
  #hold: Hold | undefined;

  constructor(leg: PrefillLeg, hold: Hold, heldAt: Micros, life: number, host: HandoffHost) {
    this.leg = leg;
    this.heldAt = heldAt;
    this.life = life;
    this.#hold = hold;
    this.#host = host;
  }

  get state(): State {
    return this.#state;
  }

  begins(_at: Micros, tokens: number): Micros {
    assert(this.#state !== "moving" && this.#state !== "owned", "blocks move once");
    const micros = this.#host.transfer(this, tokens);
    if (this.#state === "held") this.#state = "moving";
    return micros;
  }

  arrived(): boolean {
    return this.#state === "owned";
  }

  /** They are at the engine that answers, or nowhere; returns what the prefill engine is to let go of. */
  ends(owned: boolean): Hold | undefined {
    assert(this.#state !== "owned", "blocks change their owner once");
    this.#state = owned ? "owned" : "lost";
    const hold = this.#hold;
    this.#hold = undefined;
    return hold;
  }
}

/** What became of prompts that were computed at one endpoint and answered at another. */
export interface HandoffFigures {
  /** Requests that were sent so, and decisions that had one endpoint do both, by their reason. */
  readonly shared: number;
  readonly colocated: Readonly<Record<string, number>>;
  /** Transfers that began, and those that brought nothing. */
  readonly transfers: number;
  readonly failed: number;
  /** Holds whose lease ran out. */
  readonly expired: number;
  readonly bytes: number;
  /** Means over transfers: how long they took, and how long their blocks were held before they began. */
  readonly transferMicrosMean: Micros;
  readonly heldMicrosMean: Micros;
}

/** Counts as they are made. */
class HandoffCounts {
  shared = 0;
  readonly colocated = new Map<string, number>();
  transfers = 0;
  ended = 0;
  failed = 0;
  expired = 0;
  bytes = 0;
  transferMicros = 0;
  heldMicros = 0;

  figures(): HandoffFigures {
    const { shared, transfers, failed, expired, bytes } = this;
    const mean = (sum: number) => (transfers === 0 ? 0 : sum / transfers);
    return {
      shared,
      colocated: Object.fromEntries([...this.colocated].sort(([a], [b]) => (a < b ? -1 : 1))),
      transfers,
      failed,
      expired,
      bytes,
      transferMicrosMean: mean(this.transferMicros),
      heldMicrosMean: mean(this.heldMicros),
    };
  }
}
