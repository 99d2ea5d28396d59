import { type Dispatcher, Pool } from "undici";

import type { EndpointId } from "#core/endpoint/endpoint.ts";

import type { DirectoryListener, EndpointEntry } from "./endpoint-directory.ts";
import type { GatewayLimits } from "./limits.ts";

/** Connections to one endpoint. */
export interface Upstream {
  readonly entry: EndpointEntry;
  readonly pool: Dispatcher;
  /** Requests handed to the pool and not finished; never above the connection limit, so the pool never queues. */
  inFlight: number;
}

/** One pool per endpoint, there while the endpoint is in the directory. */
export class UpstreamPools implements DirectoryListener {
  readonly #limits: GatewayLimits;
  readonly #upstreams = new Map<EndpointId, Upstream>();
  /** Pools of endpoints that left, while requests in flight there go on. */
  readonly #leaving = new Set<Dispatcher>();

  constructor(limits: GatewayLimits) {
    this.#limits = limits;
  }

  joined(entry: EndpointEntry): void {
    this.left(entry);
    this.#upstreams.set(entry.id, { entry, pool: newPool(entry.url, this.#limits), inFlight: 0 });
  }

  left(entry: EndpointEntry): void {
    const upstream = this.#upstreams.get(entry.id);
    if (upstream === undefined) return;
    this.#upstreams.delete(entry.id);
    this.#leaving.add(upstream.pool);
    void upstream.pool.close().finally(() => this.#leaving.delete(upstream.pool));
  }

  get(id: EndpointId): Upstream | undefined {
    return this.#upstreams.get(id);
  }

  async destroy(): Promise<void> {
    const pools = [...[...this.#upstreams.values()].map(({ pool }) => pool), ...this.#leaving];
    this.#upstreams.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }
}

/**
 * Undici's own header and body timeouts are off: a long prefill or a slow generation is no fault, and the limits are
 * ours. HTTP/2 is off: many streams would share one connection's window.
 */
function newPool(url: string, limits: GatewayLimits): Pool {
  return new Pool(url, {
    connections: limits.upstreamConnectionsMax,
    pipelining: 1,
    keepAliveTimeout: limits.upstreamKeepAliveMillis,
    keepAliveMaxTimeout: limits.upstreamKeepAliveMillis,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: limits.connectMillisMax,
    allowH2: false,
  });
}
