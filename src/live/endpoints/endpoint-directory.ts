import type { EndpointId } from "#core/endpoint/endpoint.ts";

/** Where an endpoint is and how it stands, for forwarding, scraping and the status pages. */
export interface EndpointEntry {
  readonly id: EndpointId;
  /** Origin, without a trailing slash. */
  readonly url: string;
  /** Name that its certificate is held against, where that is not the URL's host. */
  readonly serverName?: string;
  /** Data-parallel rank behind the URL, sent as X-data-parallel-rank; undefined where the engine balances itself. */
  readonly dataParallelRank: number | undefined;
  /** Sent as a bearer token to the engine, and never shown. */
  readonly apiKey: string | undefined;
  /** waiting: not reached yet; ready: in the router; lost: was ready, cannot be reached now. */
  state: "waiting" | "ready" | "lost";
  /** Why it is not ready, for people. */
  detail: string;
  /** Raw objects of its /v1/models, for the union that the gateway serves. */
  models: readonly ServedModel[];
  /** As its source labels it. */
  labels?: Readonly<Record<string, string>>;
  /** Tokens per block of its engine's cache, once a scrape has reported it. */
  blockTokens?: number;
  /** What can go on at another endpoint is to go there. */
  evicts?: boolean;
  /** Its engine sleeps. */
  asleep?: boolean;
}

export interface ServedModel {
  readonly id: string;
  readonly object: "model";
  readonly [field: string]: unknown;
}

/** Listens for endpoints that come and go. */
export interface DirectoryListener {
  joined(entry: EndpointEntry): void;
  left(entry: EndpointEntry): void;
  /** What can go on elsewhere is to leave it, or is not any more. */
  evicting?(entry: EndpointEntry): void;
}

/** All endpoints that this gateway knows, in order of id. */
export class EndpointDirectory {
  readonly #entries = new Map<EndpointId, EndpointEntry>();
  readonly #listeners: DirectoryListener[] = [];

  listen(listener: DirectoryListener): void {
    this.#listeners.push(listener);
    for (const entry of this.all()) listener.joined(entry);
  }

  add(entry: EndpointEntry): void {
    this.#entries.set(entry.id, entry);
    for (const listener of this.#listeners) listener.joined(entry);
  }

  remove(id: EndpointId): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    for (const listener of this.#listeners) listener.left(entry);
  }

  /** Whether what can go on at another endpoint is to leave this one. */
  evict(id: EndpointId, evicts: boolean): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || (entry.evicts ?? false) === evicts) return;
    entry.evicts = evicts;
    for (const listener of this.#listeners) listener.evicting?.(entry);
  }

  /** Its engine sleeps from now on, or is awake. */
  sleep(id: EndpointId, asleep: boolean): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || (entry.asleep ?? false) === asleep) return;
    entry.asleep = asleep;
    for (const listener of this.#listeners) listener.evicting?.(entry);
  }

  get(id: EndpointId): EndpointEntry | undefined {
    return this.#entries.get(id);
  }

  /** What the certificate of a host, port included, is held against; undefined for the host. */
  readonly serverNameOf = (host: string): string | undefined => {
    for (const { url, serverName } of this.#entries.values())
      if (serverName !== undefined && new URL(url).host === host) return serverName;
    return undefined;
  };

  all(): EndpointEntry[] {
    return [...this.#entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}
