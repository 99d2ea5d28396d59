import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject, Watch } from "@kubernetes/client-node";

export interface ResourceWatchOptions<T extends KubernetesObject> {
  readonly watch: Watch;
  /** Path of the collection, for example /api/v1/namespaces/default/pods. */
  readonly path: string;
  readonly labelSelector: string;
  readonly list: () => Promise<{ items: T[]; metadata?: { resourceVersion?: string | undefined } | undefined }>;
  /** All objects as they stand, after each change. */
  readonly changed: (objects: ReadonlyMap<string, T>) => void;
  /** Notified when the API server cannot be read, with why, and "" when it can again. The last objects stay in force. */
  readonly trouble: (detail: string) => void;
  readonly retryMillis: number;
  readonly retryMillisMax: number;
}

/** How one watch ended: the server ended it, its version is too old to go on from, or it failed. */
type WatchEnd = { readonly kind: "closed" | "gone" } | { readonly kind: "failed"; readonly detail: string };

/** A server ends a watch after this long, so that a dead connection is not trusted for ever. */
const WATCH_SECONDS = 300;

/**
 * Follows a collection of the API server: lists it, watches from there, goes on from the last version when the watch
 * ends, and lists again when that version is gone. Pauses between failures grow up to a bound. While the API server
 * cannot be reached nothing is taken away.
 */
export class ResourceWatch<T extends KubernetesObject> {
  readonly #options: ResourceWatchOptions<T>;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #objects = new Map<string, T>();
  #version = "";
  #failures = 0;
  #detail = "";

  constructor(options: ResourceWatchOptions<T>) {
    this.#options = options;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let listed = false;
    while (!signal.aborted) {
      listed = listed || (await this.#list());
      if (!listed || signal.aborted) continue;
      const end = await this.#watchOnce();
      if (signal.aborted) return;
      if (end.kind === "gone") listed = false;
      else if (end.kind === "failed") await this.#failed(end.detail);
      else await this.#pause(this.#options.retryMillis);
    }
  }

  async #list(): Promise<boolean> {
    try {
      const { items, metadata } = await this.#options.list();
      if (this.#stop.signal.aborted) return false;
      this.#objects = new Map(items.map((item) => [nameOf(item), item]));
      this.#version = metadata?.resourceVersion ?? "";
      this.#worked();
      this.#options.changed(this.#objects);
      return true;
    } catch (error) {
      if (!this.#stop.signal.aborted) await this.#failed(detailOf(error));
      return false;
    }
  }

  #watchOnce(): Promise<WatchEnd> {
    const { watch, path, labelSelector } = this.#options;
    const { signal } = this.#stop;
    const query = {
      labelSelector,
      resourceVersion: this.#version,
      allowWatchBookmarks: true,
      timeoutSeconds: WATCH_SECONDS,
    };
    const ended = new AbortController();
    return new Promise((resolve) => {
      const finish = (end: WatchEnd) => {
        signal.removeEventListener("abort", stopped);
        ended.abort();
        resolve(end);
      };
      const stopped = () => finish({ kind: "closed" });
      signal.addEventListener("abort", stopped, { once: true });
      const event = (phase: string, object: T & { code?: number }) => {
        const end = ended.signal.aborted ? undefined : this.#event(phase, object);
        if (end !== undefined) finish(end);
      };
      const opened = (connection: AbortController) => {
        if (ended.signal.aborted) connection.abort();
        else ended.signal.addEventListener("abort", () => connection.abort(), { once: true });
        return undefined;
      };
      const failed = (error: unknown) => finish(endOf(error));
      watch.watch(path, query, event, failed).then(opened, failed);
    });
  }

  /** Takes one event of a watch in; what it returns ends the watch. */
  #event(phase: string, object: T & { code?: number }): WatchEnd | undefined {
    if (phase === "ERROR") {
      return object.code === GONE ? { kind: "gone" } : { kind: "failed", detail: `status ${object.code ?? "unknown"}` };
    }
    this.#worked();
    this.#version = object.metadata?.resourceVersion ?? this.#version;
    if (phase === "BOOKMARK") return undefined;
    if (phase === "DELETED") this.#objects.delete(nameOf(object));
    else if (phase === "ADDED" || phase === "MODIFIED") this.#objects.set(nameOf(object), object);
    this.#options.changed(this.#objects);
    return undefined;
  }

  #worked(): void {
    this.#failures = 0;
    if (this.#detail !== "") this.#options.trouble("");
    this.#detail = "";
  }

  async #failed(detail: string): Promise<void> {
    if (detail !== this.#detail) this.#options.trouble(detail);
    this.#detail = detail;
    const { retryMillis, retryMillisMax } = this.#options;
    await this.#pause(Math.min(retryMillisMax, retryMillis * 2 ** Math.min(this.#failures, 20)));
    this.#failures++;
  }

  async #pause(millis: number): Promise<void> {
    try {
      await sleep(millis, undefined, { signal: this.#stop.signal });
    } catch {
      // Stopped; the loop looks at that itself.
    }
  }
}

const GONE = 410;

function nameOf({ metadata }: KubernetesObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** A watch that was quiet for long is ended by the client; that is no failure. */
function endOf(error: unknown): WatchEnd {
  if (error === null || error === undefined) return { kind: "closed" };
  if (error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError"))
    return { kind: "closed" };
  const status = statusOf(error);
  return status === GONE ? { kind: "gone" } : { kind: "failed", detail: detailOf(error) };
}

/** The status or the system's code, and nothing that a server or a credential could have put into a message. */
function detailOf(error: unknown): string {
  const status = statusOf(error);
  if (status !== undefined) return `the API server answered ${status}`;
  if (!(error instanceof Error)) return "the API server cannot be read";
  if ("code" in error && typeof error.code === "string") return `the API server cannot be reached (${error.code})`;
  return error.cause === undefined ? `the API server cannot be read (${error.name})` : detailOf(error.cause);
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("statusCode" in error && typeof error.statusCode === "number") return error.statusCode;
  return "code" in error && typeof error.code === "number" ? error.code : undefined;
}
