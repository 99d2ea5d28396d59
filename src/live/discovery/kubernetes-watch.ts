import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject } from "./kubernetes-objects.ts";
import { type Collection, type KubernetesApi, resourceName, type WatchEvent } from "./kubernetes-api.ts";
import { detailOf, GONE, statusDetail, statusOf } from "./kubernetes-fault.ts";
import type { SourceStatus } from "../endpoints/source-status.ts";

export interface WatchTimes {
  readonly retryMillis: number;
  readonly retryMillisMax: number;
}

export interface ResourceWatchOptions<T extends KubernetesObject> extends WatchTimes {
  readonly api: KubernetesApi;
  readonly collection: Collection;
  /** All objects as they stand, after each change. */
  readonly changed: (objects: ReadonlyMap<string, T>) => void;
  /** Notified when the API server cannot be read, with why, and "" when it can again. The last objects stay in force. */
  readonly trouble: (detail: string) => void;
  readonly status: SourceStatus;
  /** A number in [0, 1) that spreads replicas over time. */
  readonly random?: () => number;
}

/** Of the objects, one in so many. */
const CHANGED_SHARE = 8;

/** How one watch ended: the server ended it, its version is too old to go on from, or it failed. */
type WatchEnd = { readonly kind: "closed" | "gone" } | { readonly kind: "failed"; readonly detail: string };

/**
 * The client cuts a watch that is silent for 30 s. A server ends it sooner than that and sends a bookmark two seconds
 * before, so that a quiet collection's version stays young; one that is cut by the client is a connection that died.
 */
const WATCH_SECONDS_MIN = 20;
const WATCH_SECONDS_SPREAD = 7;
/** A watch that lasted this long was no failure, however it ended. */
const STEADY_MILLIS = 5_000;
const DOUBLINGS_MAX = 20;

/**
 * Follows a collection of the API server: lists it, watches from there, goes on from the last version when the watch
 * ends, and lists again when that version is gone. Pauses between failures grow up to a bound, and are drawn around
 * it. While the API server cannot be reached nothing is taken away.
 */
export class ResourceWatch<T extends KubernetesObject> {
  readonly #options: ResourceWatchOptions<T>;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #objects = new Map<string, T>();
  #version = "";
  /** Events that nobody was notified of yet; and how many they were a pass ago. */
  #changes = 0;
  #changesSeen = 0;
  /** Since anything was read. */
  #failures = 0;

  constructor(options: ResourceWatchOptions<T>) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { retryMillis } = this.#options;
    let listed = false;
    while (!signal.aborted) {
      listed = listed || (await this.#list());
      if (!listed || signal.aborted) continue;
      const openedAt = performance.now();
      const end = await this.#watchOnce();
      if (signal.aborted) return;
      if (performance.now() - openedAt > STEADY_MILLIS) this.#failures = 0;
      if (end.kind === "gone") {
        listed = false;
        if (this.#failures > 0) await this.#pause(this.#grown());
        this.#failures++;
      } else if (end.kind === "failed") await this.#failed("watch", end.detail);
      else await this.#pause(retryMillis);
    }
  }

  async #list(): Promise<boolean> {
    const { api, collection, changed, status } = this.#options;
    try {
      const { items, version } = await api.list<T>(collection, this.#stop.signal);
      if (this.#stop.signal.aborted) return false;
      this.#objects = new Map(items.map((item) => [nameOf(item), item]));
      this.#version = version;
      status.lists++;
      this.#reads();
      changed(this.#objects);
      return true;
    } catch (error) {
      if (!this.#stop.signal.aborted) await this.#failed("list", detailOf(error));
      return false;
    }
  }

  async #watchOnce(): Promise<WatchEnd> {
    const { api, collection, status } = this.#options;
    const seconds = WATCH_SECONDS_MIN + Math.floor(this.#random() * (WATCH_SECONDS_SPREAD + 1));
    try {
      const events = await api.watch<T>(collection, { version: this.#version, seconds }, this.#stop.signal);
      status.watches++;
      this.#reads();
      for await (const event of events) {
        const end = this.#event(event);
        if (end !== undefined) return end;
      }
      return { kind: "closed" };
    } catch (error) {
      return statusOf(error) === GONE ? { kind: "gone" } : { kind: "failed", detail: detailOf(error) };
    }
  }

  /** Takes one event of a watch in; what it returns ends the watch. */
  #event({ type, object }: WatchEvent<T>): WatchEnd | undefined {
    if (type === "ERROR") {
      return object.code === GONE ? { kind: "gone" } : { kind: "failed", detail: statusDetail(object.code) };
    }
    this.#failures = 0;
    this.#reads();
    this.#version = object.metadata?.resourceVersion ?? this.#version;
    if (type === "BOOKMARK") return undefined;
    if (type === "DELETED") this.#objects.delete(nameOf(object));
    else if (type === "ADDED" || type === "MODIFIED") this.#objects.set(nameOf(object), object);
    this.#change();
    return undefined;
  }

  /**
   * Whoever is notified looks at all objects: so once for all events that came together, which is in a pass of the loop
   * without a further one, or once a share of all objects changed.
   */
  #change(): void {
    if (this.#changes++ === 0) setImmediate(this.#notify);
  }

  readonly #notify = (): void => {
    if (this.#stop.signal.aborted) return;
    const comes = this.#changes > this.#changesSeen;
    this.#changesSeen = this.#changes;
    if (comes && CHANGED_SHARE * this.#changes < this.#objects.size) {
      setImmediate(this.#notify);
      return;
    }
    this.#changes = 0;
    this.#changesSeen = 0;
    this.#options.changed(this.#objects);
  };

  /** The API server gave something: an object, a bookmark, or a watch that is open. */
  #reads(): void {
    const { status, trouble } = this.#options;
    status.news();
    if (status.succeeded()) trouble("");
  }

  async #failed(verb: "list" | "watch", why: string): Promise<void> {
    const { collection, status, trouble } = this.#options;
    const detail = `${verb} ${resourceName(collection)} in namespace ${collection.namespace}: ${why}`;
    if (status.failed(detail)) trouble(detail);
    const pause = this.#grown();
    this.#failures++;
    await this.#pause(pause);
  }

  #grown(): number {
    const { retryMillis, retryMillisMax } = this.#options;
    return Math.min(retryMillisMax, retryMillis * 2 ** Math.min(this.#failures, DOUBLINGS_MAX));
  }

  /** Between half of `millis` and one and a half. */
  async #pause(millis: number): Promise<void> {
    try {
      await sleep(millis * (0.5 + this.#random()), undefined, { signal: this.#stop.signal });
    } catch {
      // Stopped; the loop looks at that itself.
    }
  }
}

function nameOf({ metadata }: KubernetesObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
