import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { Router } from "#core/router.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { Cordon, FleetKeeper } from "../keeper/fleet-keeper.ts";

/** An endpoint as operators drive it. */
export interface EndpointControl {
  readonly id: EndpointId;
  readonly url: string;
  readonly state: "waiting" | "ready" | "lost";
  /** Who keeps it from new requests; "" for nobody. */
  readonly cordonedBy: Cordon;
  /** "" unless it is drained: draining while it has requests of this gateway, then drained. */
  readonly drain: "" | "draining" | "drained";
  /** Requests of this gateway there, in engine requests. */
  readonly requestsInFlight: number;
  /** The same of other gateways, as they reported. */
  readonly peerRequestsInFlight: number;
  /** What else keeps requests from it, or some of them; "" where nothing does. */
  readonly kept: string;
}

export interface EndpointAdminOptions {
  readonly keeper: Pick<FleetKeeper, "cordon" | "cordonOf">;
  readonly directory: EndpointDirectory;
  readonly router: Router;
}

/** A drain under way. */
interface Drain {
  readonly timer: NodeJS.Timeout | undefined;
}

/**
 * What an operator does with endpoints, until it is taken back, the endpoint's source names it no longer, or the gateway
 * ends. Cordoned: no new requests, those in flight go on. Drained: the same, and where a grace is stated, what can go on at
 * another endpoint goes there once it is over: requests without a byte, and streams whose tokens are kept. Nothing is cut.
 */
export class EndpointAdmin {
  readonly #options: EndpointAdminOptions;
  readonly #drains = new Map<EndpointId, Drain>();

  constructor(options: EndpointAdminOptions) {
    this.#options = options;
    options.directory.listen({ joined: () => {}, left: ({ id }) => this.#forget(id) });
  }

  all(): EndpointControl[] {
    const rows = new Map(this.#options.router.endpointRows(nowMicros()).map((row) => [row.id, row]));
    return this.#options.directory.all().map(({ id, url, state, detail }) => {
      const row = rows.get(id);
      const peers = row?.peerRequestsInFlight ?? 0;
      const own = (row?.requestsInFlight ?? 0) - peers;
      const drain = !this.#drains.has(id) ? "" : own > 0 ? "draining" : "drained";
      const cordonedBy = this.#options.keeper.cordonOf(id) ?? "";
      const kept = keptBy(detail, row);
      return { id, url, state, cordonedBy, drain, requestsInFlight: own, peerRequestsInFlight: peers, kept };
    });
  }

  /** Undefined where there is no such endpoint. */
  of(id: EndpointId): EndpointControl | undefined {
    return this.all().find((one) => one.id === id);
  }

  cordon(id: EndpointId): EndpointControl | undefined {
    this.#options.keeper.cordon(id, true);
    return this.of(id);
  }

  /** What was moved away does not come back; its source's own cordon stays. */
  uncordon(id: EndpointId): EndpointControl | undefined {
    this.#forget(id);
    this.#options.keeper.cordon(id, false);
    return this.of(id);
  }

  /** `graceMillis` undefined: what is in flight ends where it is, however long that takes. */
  drain(id: EndpointId, graceMillis: number | undefined): EndpointControl | undefined {
    const { directory, keeper } = this.#options;
    if (directory.get(id) === undefined) return undefined;
    this.#forget(id);
    keeper.cordon(id, true);
    const evict = (): void => directory.evict(id, true);
    if (graceMillis === 0) evict();
    const waits = graceMillis !== undefined && graceMillis > 0;
    this.#drains.set(id, { timer: waits ? setTimeout(evict, graceMillis).unref() : undefined });
    return this.of(id);
  }

  #forget(id: EndpointId): void {
    this.#options.directory.evict(id, false);
    clearTimeout(this.#drains.get(id)?.timer);
    this.#drains.delete(id);
  }
}

function keptBy(detail: string, row: EndpointRow | undefined): string {
  if (row === undefined) return detail;
  const { asleep, breaker, standing, ejected, share } = row;
  const reasons = [
    detail,
    asleep ? "asleep" : "",
    breaker === "closed" ? "" : `breaker ${breaker}`,
    standing === "well" ? "" : standing,
    ejected === "" ? "" : `ejected: ${ejected}`,
    share < 1 ? `slow start: ${(100 * share).toFixed(0)} % of its share` : "",
  ];
  return reasons.filter((reason) => reason !== "").join("; ");
}
