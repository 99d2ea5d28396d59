import { Agent, type Dispatcher, request } from "undici";
import type { EngineConnections } from "../tls/connections.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { type UpstreamHeaderOptions, upstreamHeaders, type RequestHeaders } from "../http/headers.ts";
import type { GatewayLimits } from "../http/limits.ts";

export interface EngineCall extends UpstreamHeaderOptions {
  readonly method: "GET" | "POST" | "OPTIONS";
  /** Path and query. */
  readonly path: string;
  /** The client's; they pass as they do with inference. */
  readonly headers: RequestHeaders;
  readonly body: Buffer | undefined;
  /** Aborts the call. */
  readonly signal: AbortSignal;
}

/** Calls to engines that are no inference: no decision, no retry, connections of their own. */
export class EngineCaller {
  readonly #agent: Agent;
  readonly #limits: () => GatewayLimits;

  /** `limits` are those in force at each call; connecting keeps the first. */
  constructor(
    limits: () => GatewayLimits,
    connectMillisMax: number,
    connections: EngineConnections,
    directory: EndpointDirectory,
  ) {
    this.#limits = limits;
    const connect = connections.connector(connectMillisMax, directory.serverNameOf);
    this.#agent = new Agent({ connections: CONNECTIONS_MAX, connect });
  }

  /** Rejects with undici's error when there is no answer. */
  call(entry: EndpointEntry, given: EngineCall): Promise<Dispatcher.ResponseData> {
    const { method, path, body, signal } = given;
    const headers = upstreamHeaders(given.headers, entry, given);
    const { firstByteMillisMax, idleMillisMax } = this.#limits();
    return request(entry.url + path, {
      dispatcher: this.#agent,
      headersTimeout: firstByteMillisMax,
      bodyTimeout: idleMillisMax,
      method,
      headers,
      signal,
      ...(body === undefined || method !== "POST" ? {} : { body }),
    });
  }

  destroy(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** To one engine at once; more wait. */
const CONNECTIONS_MAX = 16;

/** One endpoint for each server that is ready: data-parallel ranks share theirs. */
export function readyServers(directory: EndpointDirectory): EndpointEntry[] {
  const byUrl = new Map<string, EndpointEntry>();
  for (const entry of directory.all()) {
    if (entry.state === "ready" && !byUrl.has(entry.url)) byUrl.set(entry.url, entry);
  }
  return [...byUrl.values()];
}
