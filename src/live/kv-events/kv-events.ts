import { Agent } from "undici";
import type { Decision } from "#core/decision.ts";
import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input.ts";
import type { BlockHasher } from "#core/prompt/block-hash.ts";
import type { Micros } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import type { EndpointDirectory, EndpointEntry } from "../discovery/endpoint-directory.ts";
import { askEngine } from "../discovery/engine-request.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { RouterTap, TapListener } from "../router-tap.ts";
import type { ScopeRoots } from "../tokenizer/scope-roots.ts";
import { announcedAddress, configuredAddress, type EventAddress, type EventPorts } from "./event-address.ts";
import { baseNames, Follower, type FollowerRow } from "./follower.ts";
import { LINK_TIMES, type LinkTimes } from "./link-listener.ts";

export interface KvEventsOptions {
  readonly tap: RouterTap;
  readonly directory: EndpointDirectory;
  /** Hashes as prompts are, at that block size. */
  readonly hasherOf: (blockTokens: number) => BlockHasher;
  readonly roots: ScopeRoots;
  /** Whether prompts for a model become its engines' own tokens. */
  readonly isExact: (model: string) => boolean;
  /** Asks engines where they publish. */
  readonly discover: boolean;
  readonly ports: EventPorts;
  readonly blockTokens: () => number;
  readonly report: (event: FaultEvent) => void;
  readonly times?: Partial<LinkTimes>;
  readonly now?: () => Micros;
}

const SOURCES_PATH = "/kv_event_sources";
const SOURCES_BYTES_MAX = 1024 * 1024;
const ASK_MILLIS = 2_000;
/** An engine that did not answer where it publishes is asked again. */
const ASK_AGAIN_MILLIS = 15_000;

/**
 * Follows the KV events of every endpoint that is in the router, where it publishes them: one connection per engine and
 * rank. What it learns goes into the router like any other input.
 */
export class KvEvents implements TapListener {
  readonly #options: KvEventsOptions;
  readonly #followers = new Map<EndpointId, Follower>();
  readonly #joined = new Map<EndpointId, AbortController>();
  readonly #dispatcher = new Agent({ connections: 1, pipelining: 1, keepAliveTimeout: 1_000 });
  #stopped = false;

  constructor(options: KvEventsOptions) {
    this.#options = options;
  }

  accepted(input: Input, _decision: Decision | undefined): void {
    switch (input.kind) {
      case "endpoint-joined":
        this.#later(input.endpoint);
        break;
      case "endpoint-left":
        this.#leave(input.endpoint);
        break;
      case "block-size-changed":
        setImmediate(() => this.#resize());
        break;
      default:
    }
  }

  /** How each endpoint's events stand, in no order. */
  rows(): FollowerRow[] {
    return [...this.#followers.values()].map((follower) => follower.row());
  }

  rowOf(endpoint: EndpointId): FollowerRow | undefined {
    return this.#followers.get(endpoint)?.row();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const joined of this.#joined.values()) joined.abort();
    await Promise.all([...this.#followers.values()].map((follower) => follower.stop()));
    this.#followers.clear();
    await this.#dispatcher.destroy();
  }

  /** Inputs that follow from an input come after it, for all who listen. */
  #later(endpoint: Endpoint): void {
    this.#joined.get(endpoint.id)?.abort();
    const joined = new AbortController();
    this.#joined.set(endpoint.id, joined);
    setImmediate(() => void this.#join(endpoint, joined.signal));
  }

  #leave(id: EndpointId): void {
    this.#joined.get(id)?.abort();
    this.#joined.delete(id);
    void this.#followers.get(id)?.stop();
    this.#followers.delete(id);
  }

  async #join(endpoint: Endpoint, left: AbortSignal): Promise<void> {
    const entry = this.#options.directory.get(endpoint.id);
    if (entry === undefined || left.aborted || !endpoint.models.some((model) => this.#options.isExact(model))) return;
    // Of ranks that the engine balances itself nobody knows which one a request meets, and events name no model.
    if ((endpoint.dataParallel ?? 1) > 1 || baseNames(entry).length > 1) return;
    const address = await this.#addressOf(entry, endpoint, left);
    if (address === undefined || left.aborted || this.#stopped) return;
    this.#follow(entry, address);
  }

  async #addressOf(entry: EndpointEntry, { labels }: Endpoint, stop: AbortSignal): Promise<EventAddress | undefined> {
    const configured = configuredAddress(entry, labels, this.#options.ports);
    if (configured !== undefined || !this.#options.discover) return configured;
    const limits = { timeoutMillis: ASK_MILLIS, bytesMax: SOURCES_BYTES_MAX };
    const question = { dispatcher: this.#dispatcher, apiKey: entry.apiKey, stop, ...limits };
    while (!stop.aborted) {
      const answer = await askEngine(`${entry.url}${SOURCES_PATH}`, question);
      if (answer.kind === "answered") return announcedAddress(parsed(answer.text), entry);
      if (answer.fault === "status" || answer.fault === "garbage") return undefined;
      await pause(ASK_AGAIN_MILLIS, stop);
    }
    return undefined;
  }

  #follow(entry: EndpointEntry, address: EventAddress): void {
    const { tap, hasherOf, roots, blockTokens, report, times, now = nowMicros } = this.#options;
    const follower = new Follower(entry, address, {
      tap,
      now,
      report,
      hasher: hasherOf(blockTokens()),
      rootOf: (scope) => roots.root(scope),
      times: { ...LINK_TIMES, ...times },
    });
    void this.#followers.get(entry.id)?.stop();
    this.#followers.set(entry.id, follower);
    follower.start();
  }

  /** What was hashed at another size is of no use. */
  #resize(): void {
    for (const [id, follower] of this.#followers) {
      const entry = this.#options.directory.get(id);
      follower.give("block-size");
      void follower.stop();
      if (entry !== undefined && !this.#stopped) this.#follow(entry, follower.address);
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function pause(millis: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      stop.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, millis);
    timer.unref();
    stop.addEventListener("abort", done, { once: true });
    if (stop.aborted) done();
  });
}
