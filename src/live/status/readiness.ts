import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";

/** Endpoints that are named one by one in what is waited for. */
const NAMED_MAX = 16;

/**
 * Whether this gateway should get traffic, and if not, what it waits for. Once an endpoint was there it stays ready until
 * the shutdown: with an empty pool it answers like every other gateway, with 503 and when to come back, or lets wait. A
 * pool or service that was deleted has nothing to come back: it is waited for while no endpoint is left.
 */
export class Readiness {
  readonly #directory: EndpointDirectory;
  readonly #needsEndpoint: boolean;
  /** Sources of endpoints that cannot be read, and why. */
  readonly #troubles = new Map<string, string>();
  /** Those that are not there, and why. */
  readonly #missing = new Map<string, string>();
  /** There was an endpoint to send to. */
  #hadEndpoint = false;
  /** The warm-up is over. */
  warm = false;
  /** The gateway is shutting down; a load balancer must look elsewhere. */
  draining = false;

  /** Where somebody else takes all requests, whatever is known of endpoints, none is waited for. */
  constructor(directory: EndpointDirectory, needsEndpoint = true) {
    this.#directory = directory;
    this.#needsEndpoint = needsEndpoint;
  }

  /** Takes note of sources that fail and recover; other events are in the directory. */
  note({ kind, subject, detail }: KeeperEvent): void {
    if (kind === "source-failed") this.#troubles.set(subject, detail);
    else if (kind === "source-missing") this.#missing.set(subject, detail);
    else if (kind === "source-recovered") {
      this.#troubles.delete(subject);
      this.#missing.delete(subject);
    } else if (kind === "ready") this.#hadEndpoint = true;
  }

  /** Empty when ready; sentences for people. */
  waitsFor(): string[] {
    const waits: string[] = [];
    if (this.draining) waits.push("nothing: the gateway is shutting down");
    if (!this.warm) waits.push("the warm-up");
    if (!this.#needsEndpoint) return waits;
    const entries = this.#directory.all();
    const isReady = entries.some((entry) => entry.state === "ready");
    this.#hadEndpoint ||= isReady;
    if (!isReady) for (const [subject, detail] of this.#missing) waits.push(`${subject}: ${detail}`);
    if (this.#hadEndpoint) return waits;
    for (const [subject, detail] of this.#troubles) waits.push(`${subject}: ${detail}`);
    return [...waits, ...missing(entries)];
  }
}

function missing(entries: readonly EndpointEntry[]): string[] {
  if (entries.length === 0) return ["an endpoint: none is known"];
  const named = entries.slice(0, NAMED_MAX).map(({ id, state, detail }) => `endpoint ${id} (${state}): ${detail}`);
  const more = entries.length - named.length;
  return more > 0 ? [...named, `and ${more} more endpoints`] : named;
}
