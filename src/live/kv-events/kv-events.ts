import { isDeepStrictEqual } from "node:util";
import { Agent } from "undici";
import type { Decision } from "#core/input/decision.ts";
import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { BlockHasher } from "#core/prompt/block-hasher.ts";
import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { askEngine } from "../endpoints/engine-request.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { Intake, IntakeListener } from "../base/intake.ts";
import type { ScopeRoots } from "../tokenizer/scope-roots.ts";
import { announcedAddress, configuredAddress, type EventAddress, type EventPorts } from "./event-address.ts";
import { baseNames, Follower, type FollowerRow } from "./follower.ts";
import { LINK_TIMES, type LinkTimes } from "./link-listener.ts";

export interface KvEventsOptions {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  /** Hashes as prompts are, at that block size. */
  readonly hasherOf: (blockTokens: number) => BlockHasher;
  /** Engines' names of blocks are those hashes; false when left out. */
  readonly namesBlocks?: boolean;
  readonly roots: ScopeRoots;
  /** Whether prompts for a model become its engines' own tokens. */
  readonly isExact: (model: string) => boolean;
  /** Asks engines where they publish. */
  readonly discover: boolean;
  readonly ports: EventPorts;
  readonly blockTokens: () => number;
  readonly report: (event: FaultEvent) => void;
  readonly times?: Partial<LinkTimes>;
  /** Between two questions to one engine that answered before. */
  readonly askAgainMillis?: number;
  readonly now?: () => Micros;
}

const SOURCES_PATH = "/kv_event_sources";
const SOURCES_BYTES_MAX = 1024 * 1024;
const ASK_MILLIS = 2_000;
/** An engine that did not answer where it publishes is asked again. */
const ASK_AGAIN_MILLIS = 15_000;
/** One whose publisher cannot be reached any more is asked again no sooner. */
const REASK_MILLIS = 2_000;

/** What `KvEvents` is to be notified of. */
export const FOLLOWED_INPUTS: readonly Input["kind"][] = [
  "endpoint-joined",
  "endpoint-left",
  "endpoint-resumed",
  "blocks-cleared",
  "block-size-changed",
];

/**
 * Follows the KV events of every endpoint that is in the router, where it publishes them: one connection per engine and
 * rank. What it learns goes into the router like any other input.
 */
export class KvEvents implements IntakeListener {
  readonly #options: KvEventsOptions;
  readonly #followers = new Map<EndpointId, Follower>();
  readonly #joined = new Map<EndpointId, AbortController>();
  /** By endpoint that was asked where it publishes: when it was last. */
  readonly #askedMillis = new Map<EndpointId, number>();
  readonly #dispatcher = new Agent({ connections: 1, pipelining: 1, keepAliveTimeout: 1_000 });
  readonly #askAgainMillis: number;
  #stopped = false;

  constructor(options: KvEventsOptions) {
    this.#options = options;
    this.#askAgainMillis = options.askAgainMillis ?? REASK_MILLIS;
  }

  accepted(input: Input, _decision: Decision | undefined): void {
    switch (input.kind) {
      case "endpoint-joined":
        this.#later(input.endpoint);
        break;
      case "endpoint-left":
        this.#leave(input.endpoint);
        break;
      case "endpoint-resumed":
        setImmediate(() => void this.#askAgain(input.endpoint));
        break;
      case "blocks-cleared":
        // Another engine is there.
        if (input.inOrder !== true) setImmediate(() => void this.#askAgain(input.endpoint));
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
    this.#askedMillis.delete(id);
    void this.#followers.get(id)?.stop();
    this.#followers.delete(id);
  }

  async #join(endpoint: Endpoint, left: AbortSignal): Promise<void> {
    const entry = this.#options.directory.get(endpoint.id);
    if (entry === undefined || left.aborted || !endpoint.models.some((model) => this.#options.isExact(model))) return;
    // Of ranks that the engine balances itself nobody knows which one a request meets, and events name no model.
    if ((endpoint.dataParallel ?? 1) > 1 || baseNames(entry).length > 1) return;
    const configured = configuredAddress(entry, endpoint.labels, this.#options.ports);
    if (configured !== undefined) return this.#follow(entry, configured);
    if (!this.#options.discover) return;
    const address = await this.#addressOf(entry, left);
    if (left.aborted || this.#stopped) return;
    this.#askedMillis.set(entry.id, performance.now());
    if (address !== undefined) this.#follow(entry, address);
  }

  /**
   * An engine that came back, or whose publisher cannot be reached, may publish elsewhere by now, or for the first
   * time.
   */
  async #askAgain(id: EndpointId): Promise<void> {
    const [entry, joined, asked] = [this.#options.directory.get(id), this.#joined.get(id), this.#askedMillis.get(id)];
    if (entry === undefined || joined === undefined || asked === undefined || this.#stopped) return;
    if (performance.now() - asked < this.#askAgainMillis) return;
    this.#askedMillis.set(id, performance.now());
    const address = await this.#asked(entry, joined.signal);
    if (typeof address === "string" || address === undefined || joined.signal.aborted || this.#stopped) return;
    if (!isDeepStrictEqual(this.#followers.get(id)?.address, address)) this.#follow(entry, address);
  }

  async #addressOf(entry: EndpointEntry, stop: AbortSignal): Promise<EventAddress | undefined> {
    while (!stop.aborted) {
      const address = await this.#asked(entry, stop);
      if (address !== "unanswered") return address;
      await pause(ASK_AGAIN_MILLIS, stop);
    }
    return undefined;
  }

  /** Undefined where the engine answers that it publishes nothing. */
  async #asked(entry: EndpointEntry, stop: AbortSignal): Promise<EventAddress | "unanswered" | undefined> {
    const limits = { timeoutMillis: ASK_MILLIS, bytesMax: SOURCES_BYTES_MAX };
    const question = { dispatcher: this.#dispatcher, apiKey: entry.apiKey, stop, ...limits };
    const answer = await askEngine(`${entry.url}${SOURCES_PATH}`, question);
    if (answer.kind === "answered") return announcedAddress(parsed(answer.text), entry);
    return answer.fault === "status" || answer.fault === "garbage" ? undefined : "unanswered";
  }

  #follow(entry: EndpointEntry, address: EventAddress): void {
    const { intake, hasherOf, namesBlocks = false, roots, blockTokens, report, times, now = nowMicros } = this.#options;
    const follower = new Follower(entry, address, {
      intake,
      now,
      report,
      hasher: hasherOf(blockTokens()),
      namesBlocks,
      rootOf: (scope) => roots.root(scope),
      times: { ...LINK_TIMES, ...times },
      unreachable: (endpoint) => void this.#askAgain(endpoint),
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
