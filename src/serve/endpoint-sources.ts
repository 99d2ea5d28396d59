import { type KubernetesSource, discoverKubernetes } from "#live/discovery/kubernetes.ts";
import type { PoolVersion } from "#live/discovery/pool-source.ts";
import { type StaticServer, staticTargets } from "#live/discovery/static.ts";
import type { Target } from "#live/discovery/target.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import { CommandFailure } from "./command-failure.ts";
import { startFleet } from "./emulated-fleet.ts";
import type { LiveStack } from "./live-stack.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a running gateway learns of its endpoints. */
export interface EndpointSources {
  /** The gateway started the engines itself. */
  readonly emulated: boolean;
  stop(): Promise<void>;
}

/** The fixed list of a configuration. Throws ConfigError when two of its endpoints would have one id. */
export function listedTargets(config: Config, environment: Environment): Target[] {
  try {
    return staticTargets(config.endpoints.map((endpoint) => serverOf(endpoint, config, environment)));
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
}

/** Hands the gateway its list, watches the cluster, or starts an emulated fleet where there is neither. */
export async function startSources(
  stack: LiveStack,
  config: Config,
  listed: readonly Target[],
  environment: Environment,
): Promise<EndpointSources> {
  const { keeper, report } = stack;
  keeper.setTargets("static", listed);
  if (config.discovery.kind === "kubernetes") return watchCluster(stack, config.discovery, environment);
  if (listed.length > 0) return { emulated: false, stop: () => Promise.resolve() };
  const fleet = await startFleet(config.emulate).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`the emulated fleet did not start: ${why}`);
  });
  const apiKey = valueOf(config.emulate.apiKeyEnv, environment);
  keeper.setTargets("emulated", staticTargets(fleet.map(({ url }) => ({ url, apiKey }))));
  for (const { url, lost } of fleet) {
    void lost.then((detail) => report({ kind: "source-failed", subject: `emulated engine ${url}`, detail }));
  }
  const stop = async (): Promise<void> => {
    await Promise.all(fleet.map((engine) => engine.stop()));
  };
  return { emulated: true, stop };
}

async function watchCluster(
  { keeper, report, sources: board }: LiveStack,
  discovery: Config["discovery"],
  environment: Environment,
): Promise<EndpointSources> {
  const watch = await discoverKubernetes({
    sources: followedSources(discovery, environment),
    setTargets: (targets) => keeper.setTargets("kubernetes", targets),
    report,
    board,
  }).catch((error: unknown) => {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  });
  return { emulated: false, stop: () => watch.stop() };
}

function followedSources(discovery: Config["discovery"], environment: Environment): KubernetesSource[] {
  const listed = discovery.sources.length > 0 ? discovery.sources : [{ ...discovery, labels: {} }];
  return listed.map(({ namespace, service, selector = "", pool, poolVersion, apiKeyEnv, ...source }) => ({
    ...source,
    namespace: namespace ?? discovery.namespace,
    pods: podsOf({ service, selector, pool, version: poolVersion }),
    addressFamily: discovery.addressFamily,
    apiKey: valueOf(apiKeyEnv, environment),
  }));
}

function podsOf(named: {
  readonly service: string | undefined;
  readonly selector: string;
  readonly pool: string | undefined;
  readonly version: PoolVersion;
}): KubernetesSource["pods"] {
  const { service, selector, pool, version } = named;
  if (pool !== undefined) return { pool, version };
  return service === undefined ? { selector } : { service };
}

function serverOf(endpoint: Config["endpoints"][number], config: Config, environment: Environment): StaticServer {
  const { apiKeyEnv, ...server } = endpoint;
  return {
    ...server,
    kvCapacityTokens: endpoint.kvCapacityTokens ?? config.prefix.capacityTokens,
    apiKey: valueOf(apiKeyEnv, environment),
  };
}

function valueOf(variable: string | undefined, environment: Environment): string | undefined {
  return variable === undefined ? undefined : environment[variable];
}
