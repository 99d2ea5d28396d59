import { assert } from "#core/base/assert.ts";
import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { type AskingInput, type Input, isAsking } from "#core/input/input.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import type { PeerReported } from "#core/request/peer-news.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import type { PrefixIndex } from "#core/prefix/prefix-index.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { RequestTable } from "#core/base/request-table.ts";
import { Router, type RouterOptions } from "#core/router.ts";
import type { Micros } from "#core/base/units.ts";
import type { RoutersOptions } from "../setting/routers-options.ts";
import type { SimulationOptions } from "../setting/simulation-options.ts";

/** Delivers news when their time has come. */
type Later = (at: Micros, deliver: (at: Micros) => void) => void;

/**
 * The routers of a simulated fleet, as one: what happens to the fleet reaches each of them, a request belongs to one,
 * and what that one does reaches the others after the lag. One router is that router and nothing more.
 */
export class RouterGroup {
  readonly routers: readonly Router[];
  readonly #options: RoutersOptions;
  readonly #later: Later;
  readonly #news: readonly OwnNews[];
  readonly #sequences: number[];
  readonly #takers = new RequestTable<number>();
  #arrived = 0;
  #decisions = 0;

  /** Each has an approximate index of its own; with `index`, one router has that. */
  constructor(
    { router, routers, observe }: Pick<SimulationOptions, "router" | "routers" | "observe">,
    index: PrefixIndex | undefined,
    later: Later,
  ) {
    this.#options = routers ?? { count: 1, shareLagMicros: undefined, spread: "round-robin" };
    assert(index === undefined || this.#options.count === 1, "several routers have an index each");
    this.#later = later;
    const { count, shareLagMicros } = this.#options;
    const shares = count > 1 && shareLagMicros !== undefined;
    const numbers = Array.from({ length: count }, (_, number) => number);
    this.#news = shares ? numbers.map(() => new OwnNews()) : [];
    this.#sequences = numbers.map(() => 0);
    // Draws are the fleet's, one stream after the other, whichever router decides: luck is no part of the comparison.
    const streamOf = router.streamOf ?? ((sequence: number) => randomFor(router.seed, sequence));
    this.routers = numbers.map((number) => {
      const breakerChanged: RouterOptions["breakerChanged"] = (endpoint, change) => {
        router.breakerChanged?.(endpoint, change);
        this.#news[number]?.breaker(endpoint, change);
      };
      const keepsBreakdowns = observe !== undefined;
      const own = { ...router, keepsBreakdowns, index: index ?? new DualIndex(), breakerChanged };
      return new Router(count === 1 ? own : { ...own, streamOf: () => streamOf(this.#decisions++) });
    });
  }

  get inFlight(): number {
    return this.#sum(({ inFlight }) => inFlight);
  }

  get openCharges(): number {
    return this.#sum(({ openCharges }) => openCharges);
  }

  get strayInputs(): number {
    return this.#sum(({ strayInputs, peers }) => strayInputs + peers.counts.strayNews);
  }

  /** The one that has the request. */
  routerOf(requestId: string): Router {
    return this.routers[this.#takers.get(requestId) ?? 0]!;
  }

  /** Whose turn it is among the requests that wait at any router. */
  due(at: Micros): string | undefined {
    for (const { admission } of this.routers) {
      const requestId = admission.due(at);
      if (requestId !== undefined) return requestId;
    }
    return undefined;
  }

  /** When `due` is to be asked again though nothing came; Infinity for never. */
  get dueAt(): Micros {
    return this.routers.reduce((least, { admission }) => Math.min(least, admission.nextAt), Infinity);
  }

  accept(input: AskingInput, forced?: EndpointId): Decision;
  accept(input: Input): Decision | undefined;
  accept(input: Input, forced?: EndpointId): Decision | undefined {
    if (this.routers.length === 1) return accepted(this.routers[0]!, input, forced);
    const number = this.#numberOf(input);
    if (number < 0) {
      for (let i = 0; i < this.routers.length; i++) this.#accept(i, input, undefined);
      return undefined;
    }
    return this.#accept(number, input, forced);
  }

  /** The router that an input is for; -1 for all. */
  #numberOf(input: Input): number {
    if (input.kind === "request-arrived") {
      const number = this.#takerOf(input.request);
      this.#takers.set(input.request.id, number);
      return number;
    }
    if (!("requestId" in input)) return -1;
    const number = this.#takers.get(input.requestId);
    assert(number !== undefined, "a request belongs to the router that it came to");
    if (input.kind === "request-finished" && input.answerFollows !== true) this.#takers.delete(input.requestId);
    if (input.kind === "answer-known") this.#takers.delete(input.requestId);
    return number;
  }

  #takerOf({ id, session }: RouteRequest): number {
    const { count, spread } = this.#options;
    if (spread === "round-robin") return this.#arrived++ % count;
    return nameHash(session === "" ? id : session) % count;
  }

  #accept(number: number, input: Input, forced: EndpointId | undefined): Decision | undefined {
    const decision = accepted(this.routers[number]!, input, forced);
    const news = this.#news[number];
    if (news === undefined) return decision;
    news.follow(input, decision);
    if (news.size === 0) return decision;
    const report = { peer: `router-${number}`, epoch: 1, sequence: ++this.#sequences[number]!, news: news.take() };
    const { shareLagMicros = 0 } = this.#options;
    if (shareLagMicros === 0) this.#deliver(number, { kind: "peer-reported", at: input.at, ...report });
    else
      this.#later(input.at + shareLagMicros, (at) => this.#deliver(number, { kind: "peer-reported", at, ...report }));
    return decision;
  }

  #deliver(from: number, report: PeerReported): void {
    for (let i = 0; i < this.routers.length; i++) if (i !== from) this.routers[i]!.accept(report);
  }

  #sum(of: (router: Router) => number): number {
    return this.routers.reduce((sum, router) => sum + of(router), 0);
  }
}

function accepted(router: Router, input: Input, forced: EndpointId | undefined): Decision | undefined {
  if (isAsking(input)) return router.accept(input, forced);
  return router.accept(input);
}
