import type { EndpointId } from "../endpoint/endpoint.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { Micros } from "../base/units.ts";

interface Binding {
  readonly endpoint: EndpointId;
  readonly usedAt: Micros;
}

/** Which endpoint a session is bound to. Bounded: sessions that were longest silent go first. */
export class AffinityTable {
  readonly #bindings: RecentMap<string, Binding>;
  readonly #idleMicrosMax: Micros;

  constructor(sessionsMax: number, idleMicrosMax: Micros) {
    this.#bindings = new RecentMap(sessionsMax);
    this.#idleMicrosMax = idleMicrosMax;
  }

  get size(): number {
    return this.#bindings.size;
  }

  /** The endpoint, whether it is there or not; undefined for a session that is unknown or was silent too long. */
  endpointOf(session: string, at: Micros): EndpointId | undefined {
    const binding = session === "" ? undefined : this.#bindings.get(session);
    return binding === undefined || at - binding.usedAt > this.#idleMicrosMax ? undefined : binding.endpoint;
  }

  bind(session: string, endpoint: EndpointId, at: Micros): void {
    if (session !== "") this.#bindings.set(session, { endpoint, usedAt: at });
  }
}
