import type { buildConnector } from "undici";

import type { EndpointId } from "#core/endpoint/endpoint.ts";

import type { DirectoryListener, EndpointEntry } from "../../endpoints/endpoint-directory.ts";
import type { GatewayLimits } from "../../http/limits.ts";
import { EngineConnections } from "../../tls/connections.ts";
import { UpstreamClients } from "./upstream-clients.ts";

/** Connections to one endpoint. */
export interface Upstream {
  readonly entry: EndpointEntry;
  readonly clients: UpstreamClients;
  /** Requests handed to the clients and not finished; never above the connection limit. */
  inFlight: number;
}

/** One pool per endpoint, there while the endpoint is in the directory. */
export class UpstreamPools implements DirectoryListener {
  readonly #limits: GatewayLimits;
  readonly #upstreams = new Map<EndpointId, Upstream>();
  /** Pools of endpoints that left, while requests in flight there go on. */
  readonly #leaving = new Set<UpstreamClients>();

  readonly #connections: EngineConnections;

  constructor(limits: GatewayLimits, connections: EngineConnections = new EngineConnections()) {
    this.#limits = limits;
    this.#connections = connections;
  }

  joined(entry: EndpointEntry): void {
    this.left(entry);
    const connector = (): buildConnector.connector =>
      this.#connections.connector(this.#limits.connectMillisMax, () => entry.serverName);
    const connect = entry.url.startsWith("https:") ? connector() : undefined;
    const clients = new UpstreamClients(entry.url, this.#limits, connect);
    this.#upstreams.set(entry.id, { entry, clients, inFlight: 0 });
  }

  left(entry: EndpointEntry): void {
    const upstream = this.#upstreams.get(entry.id);
    if (upstream === undefined) return;
    this.#upstreams.delete(entry.id);
    this.#leaving.add(upstream.clients);
    void upstream.clients.close().finally(() => this.#leaving.delete(upstream.clients));
  }

  get(id: EndpointId): Upstream | undefined {
    return this.#upstreams.get(id);
  }

  async destroy(): Promise<void> {
    const all = [...[...this.#upstreams.values()].map(({ clients }) => clients), ...this.#leaving];
    this.#upstreams.clear();
    await Promise.all(all.map((clients) => clients.destroy()));
  }
}
