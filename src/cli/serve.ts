import { Command } from "commander";
import { destination, pino } from "pino";
import { type StaticServer, staticTargets } from "#live/discovery/static.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";
import { type FleetProcess, startFleetProcess } from "./fleet-process.ts";
import type { Given } from "./key-flags.ts";
import { type LiveStack, createLiveStack } from "./live-stack.ts";
import { readyText, waitingText } from "./ready-text.ts";
import { type ServePlan, addServeOptions, servePlan } from "./serve-options.ts";
import { exitSoon, stopSignal } from "./stop-signal.ts";
import { refusedBySystem } from "./system-error.ts";

const STDERR = 2;
const READY_POLL_MILLIS = 25;
/** Without an endpoint by then, what is missing is said. */
const WAITING_TOLD_MILLIS = 3_000;

export function serveCommand(): Command {
  const command = new Command("serve").description(
    "Route requests to engines; without endpoints, to an emulated fleet that it starts itself.",
  );
  return addServeOptions(command).action(async (given: Given) => serve(servePlan(given, process.env)));
}

async function serve(plan: ServePlan): Promise<void> {
  const { config } = plan;
  const stopped = stopSignal();
  const log = pino({ level: config.log.level, base: null }, destination({ fd: STDERR, sync: true }));
  const targets = targetsOf(config);
  const stack = await createLiveStack(plan, process.env, log);
  const url = await listen(stack, config);
  const fleet = await startFleet(stack, config);
  stack.keeper.setTargets("static", fleet === undefined ? targets : staticTargets(emulated(fleet, config)));
  fleet?.lost.then((why) => log.error(why)).catch(() => {});
  await stack.warmUp();
  const over = stopped.then((signal) => log.info({ signal }, "draining"));
  await announce(stack, { url, plan, emulated: fleet !== undefined }, over);
  await over;
  await stack.close();
  await fleet?.stop();
  exitSoon();
}

/** Problems of the list of endpoints are told before anything starts. */
function targetsOf(config: Config): ReturnType<typeof staticTargets> {
  try {
    return staticTargets(config.endpoints.map((endpoint) => serverOf(endpoint, config)));
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
}

function serverOf({ apiKeyEnv, ...endpoint }: Config["endpoints"][number], config: Config): StaticServer {
  return {
    ...endpoint,
    kvCapacityTokens: endpoint.kvCapacityTokens ?? config.prefix.capacityTokens,
    apiKey: apiKeyEnv === undefined ? undefined : process.env[apiKeyEnv],
  };
}

function emulated(fleet: FleetProcess, { emulate }: Config): StaticServer[] {
  const apiKey = emulate.apiKeyEnv === undefined ? undefined : process.env[emulate.apiKeyEnv];
  return fleet.urls.map((url) => ({ url, apiKey }));
}

async function listen({ gateway }: LiveStack, { listen: { host, port } }: Config): Promise<string> {
  try {
    return (await gateway.listen(host, port)).url;
  } catch (error) {
    throw refusedBySystem(`cannot listen on ${host}:${port}`, error, "choose another with --host and --port");
  }
}

async function startFleet(stack: LiveStack, config: Config): Promise<FleetProcess | undefined> {
  if (config.endpoints.length > 0 || config.discovery.kind !== "static") return undefined;
  try {
    return await startFleetProcess(config.emulate);
  } catch (error) {
    await stack.gateway.close(0);
    throw error;
  }
}

/** Says when the gateway is ready, and before that, once, what it waits for. */
async function announce(stack: LiveStack, facts: Parameters<typeof readyText>[1], over: Promise<void>): Promise<void> {
  const since = performance.now();
  let told = false;
  let ended = false;
  void over.finally(() => (ended = true));
  for (;;) {
    const waitsFor = stack.readiness.waitsFor();
    if (ended) return;
    if (waitsFor.length === 0) break;
    if (!told && performance.now() - since > WAITING_TOLD_MILLIS) {
      told = true;
      process.stdout.write(waitingText(facts.url, waitsFor));
    }
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MILLIS));
  }
  process.stdout.write(readyText(stack.directory, facts));
}
