import { type StaticServer, staticTargets } from "#live/discovery/static.ts";
import type { Target } from "#live/endpoints/target.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import { CommandFailure } from "../process/command-failure.ts";
import { EmulatedFleet, roleLabels } from "./emulated-fleet.ts";
import { namesSources, SOURCES } from "./source-catalogue.ts";
import type { FollowedSource, SourceTarget } from "./source-kind.ts";
import { secretOf } from "../process/secrets.ts";
import { namedStepTimes } from "#config/named-step-times.ts";
import { part } from "../assembly/part.ts";
import type { Environment, GatewayContext } from "../plan/gateway-context.ts";

interface Followed extends SourceTarget {
  readonly fleet: EmulatedFleet;
}

/** Where a running gateway learns of its endpoints. */
export interface EndpointSources {
  /** The gateway started the engines itself. */
  readonly emulated: boolean;
  stop(): Promise<void>;
}

/** The engines' processes, where the gateway starts any: they end behind all that could miss them. */
export const fleetPart = part({
  name: "fleet",
  needs: [],
  start: () => new EmulatedFleet(),
  stop: (fleet) => fleet.stop(),
});

export const listedPart = part({
  name: "listed",
  needs: ["plan", "environment"],
  start: ({ plan, environment }: Pick<GatewayContext, "plan" | "environment">) =>
    listedTargets(plan.config, environment),
});

interface Needed extends Pick<GatewayContext, "plan" | "environment">, Followed {
  readonly listed: readonly Target[];
  /** Whatever has to be there before engines are asked for. */
  readonly listening: unknown;
  readonly picker: unknown;
}

export const endpointsPart = part({
  name: "endpoints",
  needs: ["plan", "environment", "listed", "keeper", "report", "sources", "policy", "fleet", "listening", "picker"],
  start: ({ plan, environment, listed, ...followed }: Needed) =>
    startSources(followed, plan.config, listed, environment),
  stop: (endpoints) => endpoints.stop(),
});

/** The fixed list of a configuration. Throws ConfigError when two of its endpoints would have one id. */
function listedTargets(config: Config, environment: Environment): Target[] {
  try {
    return staticTargets(config.endpoints.map((endpoint) => serverOf(endpoint, config, environment)));
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
}

/**
 * Hands the gateway its list and follows the sources that are named, or starts an emulated fleet where there is nothing.
 */
async function startSources(
  stack: Followed,
  config: Config,
  listed: readonly Target[],
  environment: Environment,
): Promise<EndpointSources> {
  stack.keeper.setTargets("static", listed);
  if (!namesSources(config)) return startEmulated(stack, config, environment);
  const followed: FollowedSource[] = [];
  for (const source of SOURCES)
    if (source.isNamed(config.discovery)) followed.push(await source.follow(stack, config, environment));
  const stop = async (): Promise<void> => {
    await Promise.all(followed.map((source) => source.stop()));
  };
  return { emulated: false, stop };
}

async function startEmulated(
  { keeper, report, fleet }: Followed,
  config: Config,
  environment: Environment,
): Promise<EndpointSources> {
  const engines = await fleet.start(config.emulate).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`the emulated fleet did not start: ${why}`);
  });
  const apiKey = secretOf(config.emulate.apiKeyEnv, environment);
  keeper.setTargets(
    "emulated",
    staticTargets(engines.map(({ url }, i) => ({ url, apiKey, labels: roleLabels(config.emulate, i) }))),
  );
  for (const { url, lost } of engines) {
    void lost.then((detail) => report({ kind: "source-failed", subject: `emulated engine ${url}`, detail }));
  }
  return { emulated: true, stop: async () => {} };
}

function serverOf(endpoint: Config["endpoints"][number], config: Config, environment: Environment): StaticServer {
  const { apiKeyEnv, engine, ...server } = endpoint;
  return {
    ...server,
    stepTimes: namedStepTimes(engine),
    kvCapacityTokens: endpoint.kvCapacityTokens ?? config.prefix.capacityTokens,
    apiKey: secretOf(apiKeyEnv, environment),
  };
}
