import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { KubeContext } from "./kubeconfig.ts";
import { kubernetesApi } from "./kubernetes-api.ts";
import type { AddressFamily, PodSight, Scheme } from "./kubernetes-targets.ts";
import { followSelector, ServiceSource } from "./pod-source.ts";
import type { PodSource, PodSourceContext } from "./watch-of.ts";
import { POOL_GROUPS, PoolSource, type PoolVersion } from "./pool-source.ts";
import { PodTargets } from "./pod-targets.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import { SourceBoard } from "../endpoints/source-board.ts";
import type { Target } from "../endpoints/target.ts";
import type { WorkloadRules } from "./workload-rules.ts";
import { type WorkloadGroup, WorkloadSource } from "./workload-source.ts";

/** Pods of one service, those that one label selector finds, or those of an InferencePool. */
export interface KubernetesSource {
  readonly namespace: string;
  readonly pods:
    | { readonly service: string }
    | { readonly selector: string }
    | { readonly pool: string; readonly version: PoolVersion; readonly workloads?: WorkloadGroup | undefined };
  /** Port of the engine in each pod; undefined: as the slice or the pod names it. */
  readonly port?: number | undefined;
  /** Name of that port. */
  readonly portName?: string | undefined;
  /** Undefined: https where the port's appProtocol states it, else http. */
  readonly scheme?: Scheme | undefined;
  readonly addressFamily?: AddressFamily | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly modelLabel?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly dataParallelRanks?: number | undefined;
  /** What steps take at a pod with these labels; undefined where nobody knows. */
  readonly stepTimesOf?: ((labels: Readonly<Record<string, string>>) => StepTimes | undefined) | undefined;
}

export interface KubernetesOptions {
  /** One that several of them name is described by the first. */
  readonly sources: readonly KubernetesSource[];
  /** All targets of all sources, after each change. */
  readonly setTargets: (targets: readonly Target[]) => void;
  /** What is stated of the pool, after each change; nobody asks where it is left out. */
  readonly setWorkloads?: (rules: WorkloadRules) => void;
  readonly report: (event: KeeperEvent) => void;
  readonly board?: SourceBoard;
  /** By default what kubectl would use, or the pod's own service account. */
  readonly kubeContext?: KubeContext;
  readonly retryMillis?: number;
  readonly retryMillisMax?: number;
}

const RETRY_MILLIS = 500;
const RETRY_MILLIS_MAX = 30_000;

/**
 * Finds engines in a cluster. A pod becomes a target once it is ready. One that is terminating, or ready no longer, is
 * cordoned: it gets no new requests and finishes those it has. It leaves when the API server names it no more. A pod that
 * took the address of another is a new target; one with an address of each family is one target, at that of addressFamily.
 *
 * Needs list and watch on endpointslices, services and pods (with a selector: on pods alone; with a pool: on
 * inferencepools and pods, and where workloads are followed on inferenceobjectives and inferencemodelrewrites). Without
 * services or pods the endpoints are found all the same and have no labels. Rejects where no API server is configured.
 */
export async function discoverKubernetes(options: KubernetesOptions): Promise<PodSource> {
  const { report } = options;
  const api = kubernetesApi(options.kubeContext);
  const context: PodSourceContext = {
    api,
    board: options.board ?? new SourceBoard(),
    report,
    times: {
      retryMillis: options.retryMillis ?? RETRY_MILLIS,
      retryMillisMax: options.retryMillisMax ?? RETRY_MILLIS_MAX,
    },
  };
  const found: (readonly Target[])[] = options.sources.map(() => []);
  const stated = options.sources.flatMap((source) => followWorkloads(context, source, options.setWorkloads));
  const sources = options.sources.map((source, i) => {
    const targets = new PodTargets({
      ...source,
      addressFamily: source.addressFamily ?? "ipv4",
      report,
      setTargets: (its) => {
        found[i] = its;
        options.setTargets(firstOfEach(found));
      },
    });
    return follow(context, source, (pods) => targets.show(pods));
  });
  return {
    stop: async () => {
      await Promise.all([...stated, ...sources].map((source) => source.stop()));
      await api.stop();
    },
  };
}

function followWorkloads(
  context: PodSourceContext,
  { namespace, pods }: KubernetesSource,
  show: KubernetesOptions["setWorkloads"],
): PodSource[] {
  if (!("pool" in pods) || pods.workloads === undefined || show === undefined) return [];
  const pool = { name: pods.pool, group: POOL_GROUPS[pods.version] };
  return [new WorkloadSource(context, { namespace, pool, group: pods.workloads }, show)];
}

function follow(
  context: PodSourceContext,
  source: KubernetesSource,
  show: (pods: readonly PodSight[]) => void,
): PodSource {
  const { namespace, pods, port, portName, scheme } = source;
  const choice = { ports: port === undefined ? undefined : [port], portName, scheme };
  if ("pool" in pods) return new PoolSource(context, { namespace, ...pods }, choice, show);
  if ("selector" in pods) return followSelector(context, { namespace, selector: pods.selector }, choice, show);
  return new ServiceSource(context, { namespace, service: pods.service }, choice, show);
}

function firstOfEach(found: readonly (readonly Target[])[]): Target[] {
  const targets = new Map<string, Target>();
  for (const target of found.flat()) if (!targets.has(target.id)) targets.set(target.id, target);
  return [...targets.values()];
}
