import { ApiServer } from "./api-server.ts";
import { isBeyond } from "../base/json-scan.ts";
import { type KubeContext, kubeContext } from "./kubeconfig.ts";

/** A collection of the API server, whole or what a selector leaves of it. */
export interface Collection {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, for example pods. */
  readonly resource: string;
  readonly namespace: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ObjectList<T> {
  readonly items: readonly T[];
  /** Version from which a watch goes on; "" where the server gave none. */
  readonly version: string;
}

/** A change of an object, a bookmark, or an error that ends the watch. */
export interface WatchEvent<T> {
  readonly type: string;
  readonly object: T & { readonly code?: number };
}

export interface WatchStart {
  readonly version: string;
  /** After which the server ends it. */
  readonly seconds: number;
}

/** What discovery asks of an API server. All of it rejects with a StatusError, or with what the connection failed for. */
export interface KubernetesApi {
  list<T>(collection: Collection, stop: AbortSignal): Promise<ObjectList<T>>;
  /** Resolves once it is open; its events end when the server ends it. A watch that is silent for 30 s has failed. */
  watch<T>(collection: Collection, start: WatchStart, stop: AbortSignal): Promise<AsyncIterable<WatchEvent<T>>>;
  stop(): Promise<void>;
}

/** Longest wait for a list. */
const LIST_MILLIS_MAX = 30_000;
/** Objects asked for at once, so that reading them keeps nobody waiting, and the most that is read of an answer. */
const PAGE_OBJECTS = 250;
const PAGE_BYTES_MAX = 67_108_864;
/** Of one list. */
const PAGES_MAX = 1_000;
/** Of one event; an object has 1.5 MB at most. */
const EVENT_BYTES_MAX = 2_097_152;
/** Shorter ones are read in a few milliseconds, whatever they hold. */
const UNSCANNED_BYTES_MAX = 65_536;
/** No object of a cluster has as much; 200,000 keys take 90 ms to read. */
const EVENT_BOUNDS = {
  jsonDepthMax: 128,
  jsonKeysMax: 65_536,
  jsonFieldsMax: 256,
  jsonItemsMax: 262_144,
  jsonValuesMax: 524_288,
};
const NEWLINE = 10;
const BLANK = 0x20;

function pathOf({ group, version, resource, namespace }: Collection): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}/namespaces/${namespace}/${resource}`;
}

/** As rules of RBAC name it: pods, endpointslices.discovery.k8s.io. */
export function resourceName({ group, resource }: Collection): string {
  return group === "" ? resource : `${resource}.${group}`;
}

/**
 * The API server of `given`, or of what kubectl would use, or of the pod's service account. Throws an Error that names
 * where it looked when there is none.
 */
export function kubernetesApi(
  given?: KubeContext,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): KubernetesApi {
  const server = new ApiServer(given ?? kubeContext(environment));
  return {
    list: (collection, stop) => listAll(server, collection, stop),
    watch: async <T>(collection: Collection, { version, seconds }: WatchStart, stop: AbortSignal) => {
      const query = { watch: "true", resourceVersion: version, allowWatchBookmarks: "true" };
      const asked = { ...selectorsOf(collection), ...query, timeoutSeconds: String(seconds) };
      const { body } = await server.get(pathOf(collection), asked, stop);
      return eventsOf<T>(body);
    },
    stop: () => server.stop(),
  };
}

function selectorsOf({ labelSelector, fieldSelector }: Collection): Record<string, string> {
  return {
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  };
}

interface Page<T> {
  readonly items?: readonly T[];
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

/** Page by page, all of one version. One that expired meanwhile is a StatusError, and the list begins anew. */
async function listAll<T>(server: ApiServer, collection: Collection, stop: AbortSignal): Promise<ObjectList<T>> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(LIST_MILLIS_MAX)]);
  const query: Record<string, string> = { ...selectorsOf(collection), limit: String(PAGE_OBJECTS) };
  const items: T[] = [];
  for (let pages = 1; ; pages++) {
    const { body } = await server.get(pathOf(collection), query, signal);
    const page = JSON.parse(await textOf(body)) as Page<T>;
    for (const item of page.items ?? []) items.push(item);
    const { resourceVersion: version = "", continue: next = "" } = page.metadata ?? {};
    if (next === "") return { items, version };
    if (pages === PAGES_MAX) throw new Error(`expected a list of at most ${PAGES_MAX} pages, got more`);
    query["continue"] = next;
  }
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > PAGE_BYTES_MAX) throw new Error(`expected at most ${PAGE_BYTES_MAX} bytes of a list, got more`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A line each. One that the connection cut is left out: the next watch brings it again. */
async function* eventsOf<T>(body: AsyncIterable<Buffer>): AsyncGenerator<WatchEvent<T>> {
  let rest: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const last = chunk.subarray(from, end);
      const line = rest.length === 0 ? last : Buffer.concat([...rest, last]);
      rest = [];
      bytes = 0;
      from = end + 1;
      if (!isBlank(line)) yield parsed<T>(line);
    }
    if (from === chunk.length) continue;
    rest.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > EVENT_BYTES_MAX) throw new Error(`expected at most ${EVENT_BYTES_MAX} bytes of an event, got more`);
  }
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte > BLANK) return false;
  return true;
}

function parsed<T>(line: Buffer): WatchEvent<T> {
  if (line.length > UNSCANNED_BYTES_MAX && isBeyond(line, EVENT_BOUNDS))
    throw new Error("expected an event of a usual object, got one that is nested too deeply or has too many keys");
  return JSON.parse(line.toString("utf8")) as WatchEvent<T>;
}
