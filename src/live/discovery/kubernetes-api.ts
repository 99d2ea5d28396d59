import { existsSync } from "node:fs";
import type { KubeConfig, KubernetesObject, Watch } from "@kubernetes/client-node";
import { type Dispatcher, request } from "undici";
import { StatusError } from "./kubernetes-fault.ts";

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

/** What discovery asks of an API server. */
export interface KubernetesApi {
  readonly watch: Watch;
  /** Rejects with a StatusError, or with what the connection failed for. */
  list<T extends KubernetesObject>(collection: Collection, stop: AbortSignal): Promise<ObjectList<T>>;
}

/** Longest wait for a list, as for the first byte of a watch. */
const LIST_MILLIS_MAX = 30_000;
/** Objects asked for at once, so that reading them keeps nobody waiting, and the most that is read of an answer. */
const PAGE_OBJECTS = 250;
const PAGE_BYTES_MAX = 67_108_864;
/** Of one list. */
const PAGES_MAX = 1_000;
const SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";

export function pathOf({ group, version, resource, namespace }: Collection): string {
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
export async function kubernetesApi(
  given?: KubeConfig,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<KubernetesApi> {
  // The client's models take 0.5 s and 60 MB to load, which only clusters should pay.
  const client = await import("@kubernetes/client-node");
  const config = given ?? new client.KubeConfig();
  if (given === undefined) {
    config.loadFromDefault();
    if (fellBack(config)) throw new Error(noCredential(environment));
  }
  const server = config.getCurrentCluster()?.server;
  if (server === undefined)
    throw new Error("discovery: the kubeconfig has no current context, or one without a cluster");
  return {
    watch: new client.Watch(config),
    list: async (collection, stop) => {
      const url = new URL(server + pathOf(collection));
      for (const [key, value] of Object.entries(selectorsOf(collection))) url.searchParams.set(key, value);
      const context = new client.RequestContext(url.toString(), client.HttpMethod.GET);
      await config.applySecurityAuthentication(context);
      return listAll(url, context.getHeaders(), context.getDispatcher(), stop);
    },
  };
}

export function selectorsOf({ labelSelector, fieldSelector }: Collection): Record<string, string> {
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
async function listAll<T extends KubernetesObject>(
  url: URL,
  headers: Record<string, string>,
  dispatcher: Dispatcher | undefined,
  stop: AbortSignal,
): Promise<ObjectList<T>> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(LIST_MILLIS_MAX)]);
  const options = { headers: { ...headers, accept: "application/json" }, signal, ...(dispatcher && { dispatcher }) };
  const items: T[] = [];
  try {
    url.searchParams.set("limit", String(PAGE_OBJECTS));
    for (let pages = 1; ; pages++) {
      const answer = await request(url, options);
      if (answer.statusCode !== 200) {
        await answer.body.dump();
        throw new StatusError(answer.statusCode);
      }
      const page = JSON.parse(await textOf(answer.body)) as Page<T>;
      for (const item of page.items ?? []) items.push(item);
      const { resourceVersion: version = "", continue: next = "" } = page.metadata ?? {};
      if (next === "") return { items, version };
      if (pages === PAGES_MAX) throw new Error(`expected a list of at most ${PAGES_MAX} pages, got more`);
      url.searchParams.set("continue", next);
    }
  } finally {
    // The client makes one for each call.
    void dispatcher?.close();
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

/** The client's last resort is an address at which hardly anybody has an API server. */
function fellBack(config: KubeConfig): boolean {
  const { server } = config.getCurrentCluster() ?? {};
  return server === "http://localhost:8080" && config.getCurrentUser()?.name === "user";
}

function noCredential(environment: Readonly<Record<string, string | undefined>>): string {
  if (environment["KUBERNETES_SERVICE_HOST"] !== undefined && !existsSync(SERVICE_ACCOUNT_TOKEN)) {
    return `discovery: this pod has no service account token (${SERVICE_ACCOUNT_TOKEN} is missing); set automountServiceAccountToken: true for it, or KUBECONFIG`;
  }
  return `discovery: no API server is configured: KUBECONFIG is not set, there is no ~/.kube/config, and no ${SERVICE_ACCOUNT_TOKEN} as a pod would have`;
}
