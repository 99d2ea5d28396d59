import type { KubeConfig, V1EndpointSlice, V1Pod } from "@kubernetes/client-node";
import { type PodLabels, podOrigin, podsOfList, podsOfSlices, type PodSight } from "./kubernetes-targets.ts";
import { ResourceWatch } from "./kubernetes-watch.ts";
import type { KeeperEvent } from "./server-keeper.ts";
import { serverTargets } from "./static.ts";
import type { Target } from "./target.ts";

export interface KubernetesOptions {
  readonly namespace: string;
  /** The pods of a service, or those that a label selector finds. */
  readonly pods: { readonly service: string } | { readonly selector: string };
  /** Port of the engine in each pod. */
  readonly port: number;
  readonly apiKey?: string | undefined;
  readonly dataParallelRanks?: number | undefined;
  /** All targets, after each change. */
  readonly setTargets: (targets: readonly Target[]) => void;
  readonly report: (event: KeeperEvent) => void;
  /** By default what kubectl would use, or the pod's own service account. */
  readonly kubeConfig?: KubeConfig;
  readonly retryMillis?: number;
  readonly retryMillisMax?: number;
}

export interface KubernetesDiscovery {
  stop(): Promise<void>;
}

const RETRY_MILLIS = 500;
const RETRY_MILLIS_MAX = 30_000;

/**
 * Finds engines in a cluster. A pod becomes a target once it is ready. One that is terminating, or ready no longer, is
 * cordoned: it gets no new requests and finishes those it has. It leaves when the API server names it no more. A pod that
 * took the address of another is a new target.
 *
 * Needs list and watch on endpointslices (or pods, with a selector). With a service it also reads that service and the
 * pods that it selects, for their labels; without those rights the labels are left out.
 */
export async function discoverKubernetes(options: KubernetesOptions): Promise<KubernetesDiscovery> {
  // The client's models take 0.5 s and 60 MB to load, which only clusters should pay.
  const client = await import("@kubernetes/client-node");
  const kubeConfig = options.kubeConfig ?? new client.KubeConfig();
  if (options.kubeConfig === undefined) kubeConfig.loadFromDefault();
  const { namespace } = options;
  const watch = new client.Watch(kubeConfig);
  const core = kubeConfig.makeApiClient(client.CoreV1Api);
  const slices = kubeConfig.makeApiClient(client.DiscoveryV1Api);
  const targets = new PodTargets(options);
  const common = {
    watch,
    retryMillis: options.retryMillis ?? RETRY_MILLIS,
    retryMillisMax: options.retryMillisMax ?? RETRY_MILLIS_MAX,
  };

  const watchPods = (labelSelector: string, subject: string, changed: (pods: ReadonlyMap<string, V1Pod>) => void) =>
    new ResourceWatch<V1Pod>({
      ...common,
      path: `/api/v1/namespaces/${namespace}/pods`,
      labelSelector,
      list: () => core.listNamespacedPod({ namespace, labelSelector }),
      changed,
      trouble: troubleOf(options, subject),
    });

  if ("selector" in options.pods) {
    return watchPods(options.pods.selector, "pods", (pods) => targets.show(podsOfList(pods.values())));
  }

  const { service } = options.pods;
  const labelSelector = `kubernetes.io/service-name=${service}`;
  let seen: ReadonlyMap<string, V1EndpointSlice> = new Map();
  let labelsOf: PodLabels = () => ({});
  const show = () => targets.show(podsOfSlices(seen.values(), labelsOf));
  const sliceWatch = new ResourceWatch<V1EndpointSlice>({
    ...common,
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    labelSelector,
    list: () => slices.listNamespacedEndpointSlice({ namespace, labelSelector }),
    changed: (objects) => {
      seen = objects;
      show();
    },
    trouble: troubleOf(options, `endpoint slices of ${service}`),
  });
  const labelWatch = core.readNamespacedService({ name: service, namespace }).then(
    ({ spec }) => {
      const selector = Object.entries(spec?.selector ?? {}).map(([name, value]) => `${name}=${value}`);
      if (selector.length === 0) return undefined;
      return watchPods(selector.join(","), `pod labels of ${service}`, (pods) => {
        labelsOf = (name) => pods.get(`${namespace}/${name}`)?.metadata?.labels ?? {};
        show();
      });
    },
    () => {
      const detail = "the service cannot be read, so its pods have no labels";
      options.report({ kind: "source-failed", subject: `service ${service}`, detail });
      return undefined;
    },
  );
  return {
    stop: async () => {
      await Promise.all([sliceWatch.stop(), labelWatch.then((watching) => watching?.stop())]);
    },
  };
}

function troubleOf({ report }: KubernetesOptions, subject: string): (detail: string) => void {
  return (detail) => report({ kind: detail === "" ? "source-recovered" : "source-failed", subject, detail });
}

/** Turns what is seen of pods into targets: remembers who was ready once. */
class PodTargets {
  readonly #options: KubernetesOptions;
  /** uid by address of pods that are targets. */
  readonly #admitted = new Map<string, string>();

  constructor(options: KubernetesOptions) {
    this.#options = options;
  }

  show(pods: readonly PodSight[]): void {
    const present = new Set(pods.map(({ address }) => address));
    for (const address of this.#admitted.keys()) if (!present.has(address)) this.#admitted.delete(address);
    const successors = pods.filter(({ address, uid }) => (this.#admitted.get(address) ?? uid) !== uid);
    if (successors.length > 0) {
      for (const { address } of successors) this.#admitted.delete(address);
      this.#set(pods);
    }
    for (const { address, uid, serves } of pods) if (serves) this.#admitted.set(address, uid);
    this.#set(pods);
  }

  #set(pods: readonly PodSight[]): void {
    const { setTargets, port, apiKey, dataParallelRanks } = this.#options;
    const admitted = pods.filter(({ address }) => this.#admitted.has(address));
    setTargets(
      admitted.flatMap(({ address, labels, serves }) =>
        serverTargets({ url: podOrigin(address, port), labels, apiKey, dataParallelRanks }).map((target) => ({
          ...target,
          cordoned: !serves,
        })),
      ),
    );
  }
}
