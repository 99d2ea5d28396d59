import { assert } from "#core/base/assert.ts";
import type { Routed } from "#core/input/decision.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { PrefillElsewhere, type PrefillHost } from "#core/path/prefill/prefill-elsewhere.ts";
import type { Micros } from "#core/base/units.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { Flight } from "../path/flight.ts";
import type { Outcomes } from "../result/outcomes.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import { Handoff, type HandoffHost } from "../path/handoff.ts";
import { HandoffCounts } from "./handoff-figures.ts";
import { PrefillLeg } from "../path/prefill-leg.ts";
import { transferMicros, type TransferOptions } from "../setting/transfer-options.ts";

/** The simulation as the desk sees it. */
export interface HandoffDeskHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  later(at: Micros, event: SimulationEvent): void;
  answer(at: Micros, event: SimulationEvent): void;
  readonly paths: { readonly router: PathRouter };
}

/**
 * Requests whose prompts are computed at one engine and answered at another, as the gateway does it with vLLM's NIXL
 * connector: the prompt's one token comes back, the request goes on to the other engine, which takes room for the
 * prompt and fetches the blocks; the first engine holds them until then. Where both are sent at once, the second one has
 * the request as soon as the prompt is computed, without a way through the gateway.
 */
export class HandoffDesk implements HandoffHost {
  readonly counts = new HandoffCounts();
  readonly #options: TransferOptions;
  readonly #requestMicros: Micros;
  readonly #host: HandoffDeskHost;
  #underWay = 0;

  constructor(options: TransferOptions, requestMicros: Micros, host: HandoffDeskHost) {
    this.#options = options;
    this.#requestMicros = requestMicros;
    this.#host = host;
  }

  /** A decision sends a request on its way: the number of the engine that it goes to first. */
  begin(flight: Flight, decision: Routed): number {
    const { fleet, outcomes } = this.#host;
    const { prefill, colocated } = decision;
    const answers = fleet.numberOf(decision.endpoint);
    outcomes.endpoint[flight.row] = answers;
    if (colocated !== undefined) this.counts.colocated.set(colocated, (this.counts.colocated.get(colocated) ?? 0) + 1);
    flight.lacksStage(flight.prefill);
    flight.prefill = prefill && new PrefillElsewhere(decision, prefill, this.#hostOf(flight));
    if (prefill === undefined) {
      outcomes.prefillEndpoint[flight.row] = -1;
      return answers;
    }
    this.counts.shared++;
    const engine = fleet.numberOf(prefill.endpoint);
    outcomes.prefillEndpoint[flight.row] = engine;
    outcomes.expectedTokens[flight.row] = prefill.heldTokens ?? prefill.hitTokens;
    flight.leg = new PrefillLeg(flight, engine, answers);
    flight.hasStage(flight.prefill!);
    return engine;
  }

  /** An engine holds the blocks of a prompt that it computed. */
  held(at: Micros, leg: PrefillLeg, hold: Hold): void {
    leg.hold = hold;
    if (leg.flight.leg !== leg) return;
    leg.flight.fetch = new Handoff(leg, hold, at, this.#host.fleet.lifeOf(leg.engine), this);
  }

  /** It is done with the prompt; the gateway gets to know. */
  computed(at: Micros, leg: PrefillLeg): void {
    const { flight } = leg;
    const event = { kind: "prefilled", take: () => this.#computed(leg) } as const;
    if (flight.prefill!.isTogether) this.#host.later(Math.max(at, this.#host.clock), event);
    else this.#host.answer(at, event);
  }

  #computed(leg: PrefillLeg): void {
    const { flight } = leg;
    if (flight.leg !== leg || flight.closed) return;
    leg.isComputed = true;
    flight.prefill!.prefilled(leg.cachedTokens, true);
    if (flight.prefill!.isTogether) this.sendOn(flight);
  }

  /** The prompt is computed: the request goes to the engine that answers. */
  sendOn(flight: Flight): void {
    const { clock: at } = this.#host;
    const { answers } = flight.leg!;
    flight.prefill!.sentOn();
    flight.leg = undefined;
    flight.engine = answers;
    flight.sent(at);
    const delay = flight.prefill!.isTogether ? 0 : this.#requestMicros;
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
    this.#host.later(clock + micros, { kind: "handoff", take: () => this.#handedOver(handoff) });
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
    flight.prefill!.notFetched();
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
  #stranded({ fetch, leg, engine }: Flight): void {
    const isKnown = leg === undefined && this.#host.fleet.conditions[engine] === "serving";
    if (fetch?.state === "held" && isKnown) this.#letGo(fetch, false);
  }

  /** An attempt is over, or the request is. Of what was computed for it and is still held, the lease runs out. */
  dropped(flight: Flight): void {
    const { fetch } = flight;
    flight.leg = undefined;
    flight.fetch = undefined;
    if (fetch?.state !== "held") return;
    const { clock } = this.#host;
    const expiresAt = Math.max(clock, fetch.heldAt + this.#options.leaseMicros);
    this.#host.later(expiresAt, { kind: "handoff", take: () => this.#expired(fetch) });
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

  /** What must hold at the end of a run: nothing moves for ever, and who holds blocks holds them for somebody. */
  verify(open: number): void {
    const { transfers, ended } = this.counts;
    assert(this.#underWay === transfers - ended, "every transfer has one end, or none yet");
    assert(open > 0 || ended === transfers, "no transfer is under way when all requests are over");
  }
}
