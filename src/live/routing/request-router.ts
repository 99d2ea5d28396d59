import type { Placed } from "#core/input/decision.ts";
import { PathRouter, type PathRouterOptions } from "#core/path/path-router.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import { QueueTurns } from "./queue-turns.ts";
import { nowMicros } from "../base/clock.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { RouterTap } from "../base/router-tap.ts";

/** Notified of the decision on a request, and how long it waited for its turn. It must not throw. */
export type OnDecided = (decision: Placed, queuedMicros: Micros) => void;

export interface RequestRouterOptions extends Pick<PathRouterOptions, "retry" | "hedge" | "watch"> {
  readonly tap: RouterTap;
  readonly counters: Pick<GatewayCounters, "queued">;
}

/** The router as the gateway's requests reach it: an arrival is decided when its turn has come, all else at once. */
export class RequestRouter extends PathRouter {
  readonly #tap: RouterTap;
  readonly #counters: RequestRouterOptions["counters"];
  readonly #watch: RequestRouterOptions["watch"];
  readonly #turns: QueueTurns;

  constructor({ tap, counters, retry, hedge, watch }: RequestRouterOptions) {
    super({
      retry,
      hedge,
      watch,
      now: nowMicros,
      accept: (input) => tap.accept(input),
      hasTaker: (requestId, kind) => tap.router.hasTaker(nowMicros(), requestId, kind),
    });
    this.#tap = tap;
    this.#counters = counters;
    this.#watch = watch;
    this.#turns = new QueueTurns(tap);
  }

  arrive(request: RouteRequest, decided: OnDecided): void {
    this.#watch?.deciding(request.id);
    const decision = this.#tap.accept({ kind: "request-arrived", at: nowMicros(), request });
    if (decision.kind !== "queued") return this.#decided(request.id, decision, 0, decided);
    countUp(this.#counters.queued, decision.reason);
    this.#turns.wait(request.id, (placed) => this.#decided(request.id, placed, placed.at - decision.at, decided));
  }

  #decided(requestId: string, decision: Placed, queuedMicros: Micros, decided: OnDecided): void {
    this.#watch?.decided(requestId, decision, queuedMicros);
    decided(decision, queuedMicros);
  }

  stop(): void {
    this.#turns.stop();
  }
}
