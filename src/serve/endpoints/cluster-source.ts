import type { Config } from "#config/schema.ts";
import type { KubernetesSource } from "#live/discovery/kubernetes.ts";
import type { PoolVersion } from "#live/discovery/pool-source.ts";
import type { WorkloadGroup } from "#live/discovery/workload-source.ts";
import type { Environment } from "../plan/gateway-context.ts";
import { CommandFailure } from "../process/command-failure.ts";
import { secretOf } from "../process/secrets.ts";
import { podStepTimes } from "./pod-step-times.ts";
import type { SourceKind } from "./source-kind.ts";

/** Pods of a Kubernetes cluster. */
export const CLUSTER_SOURCE: SourceKind = {
  key: "discovery.kind",
  isNamed: ({ kind }) => kind === "kubernetes",
  follow: async ({ keeper, report, sources: board, policy }, { discovery }, environment) => {
    const { discoverKubernetes } = await import("#live/discovery/kubernetes.ts");
    return discoverKubernetes({
      sources: followedSources(discovery, environment),
      setTargets: (targets) => keeper.setTargets("kubernetes", targets),
      setWorkloads: (rules) => policy.workloads.set(rules),
      report,
      board,
    }).catch((error: unknown) => {
      throw new CommandFailure(error instanceof Error ? error.message : String(error));
    });
  },
};

function followedSources(discovery: Config["discovery"], environment: Environment): KubernetesSource[] {
  const listed = discovery.sources.length > 0 ? discovery.sources : [{ ...discovery, labels: {} }];
  const { workloads } = discovery;
  return listed.map(({ namespace, service, selector = "", pool, poolVersion, apiKeyEnv, engine, ...source }) => ({
    ...source,
    stepTimesOf: podStepTimes(engine),
    namespace: namespace ?? discovery.namespace,
    pods: podsOf({ service, selector, pool, version: poolVersion, workloads }),
    addressFamily: discovery.addressFamily,
    apiKey: secretOf(apiKeyEnv, environment),
  }));
}

function podsOf(named: {
  readonly service: string | undefined;
  readonly selector: string;
  readonly pool: string | undefined;
  readonly version: PoolVersion;
  readonly workloads: WorkloadGroup | undefined;
}): KubernetesSource["pods"] {
  const { service, selector, pool, version, workloads } = named;
  if (pool !== undefined) return { pool, version, workloads };
  return service === undefined ? { selector } : { service };
}
