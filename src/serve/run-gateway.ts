import { flushCompileCache } from "node:module";
import type { Target } from "#live/endpoints/target.ts";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { adminPortOf } from "#config/listen-section.ts";
import type { Config } from "#config/schema.ts";
import { listedTargets, startSources } from "./endpoints/endpoint-sources.ts";
import { announce, announceStart } from "./announce.ts";
import { openLog } from "./observe/live-log.ts";
import { startLivePicker } from "./live-picker.ts";
import { type LiveStack, createLiveStack, drainNoticeMillis } from "./live-stack.ts";
import { requirePackages } from "./optional-packages.ts";
import type { ReadyFacts } from "./ready-text.ts";
import type { ServePlan } from "./plan/serve-plan.ts";
import { heedSignals } from "./process/early-stop.ts";
import { boundStart, exitSoon, stopSignal } from "./process/stop-signal.ts";
import { refusedBySystem } from "./process/system-error.ts";

/** Runs a gateway until it is asked to stop. */
export async function runGateway(plan: ServePlan): Promise<void> {
  const { config } = plan;
  requirePackages(config);
  await heedSignals();
  const stopped = stopSignal();
  const started = boundStart(stopped);
  const log = openLog(config.log);
  const listed = listedTargets(config, process.env);
  const stack = await createLiveStack(plan, process.env, log);
  const over = stopped.then((signal) => {
    stack.readiness.draining = true;
    const { drainMillis, drainNoticeMillis } = config.listen;
    const requestsInFlight = stack.gateway.inFlight();
    log.info({ event: "draining", signal, requestsInFlight, drainNoticeMillis, drainMillis }, "draining");
  });
  const { urls, picker, sources } = await start(stack, config, listed).catch(async (error: unknown) => {
    await stack.close();
    throw error;
  });
  started();
  if (!stack.readiness.draining) await getReady(stack, { ...urls, plan, emulated: sources.emulated });
  await over;
  await Promise.all([stack.close(), picker?.stop(config.listen.drainMillis, drainNoticeMillis(config, process.env))]);
  await sources.stop();
  log.info({ event: "stopped", upSeconds: Math.round(performance.now() / MILLIS_PER_SECOND) }, "stopped");
  exitSoon();
}

async function getReady(stack: LiveStack, facts: ReadyFacts): Promise<void> {
  stack.policy.start();
  stack.rollouts.begin();
  await announce(stack, facts);
  // What was compiled helps the next start, also after an end by force.
  flushCompileCache();
}

async function start(stack: LiveStack, config: Config, listed: readonly Target[]) {
  const urls = await listen(stack, config);
  announceStart(urls.url, config);
  const picker = await startLivePicker(stack, config);
  // Emulated engines load their code in processes of their own meanwhile.
  const [sources] = await Promise.all([startSources(stack, config, listed, process.env), stack.warmUp()]);
  return { urls, picker, sources };
}

async function listen({ gateway }: LiveStack, config: Config): Promise<Pick<ReadyFacts, "url" | "adminUrl">> {
  const { host, port, adminHost } = config.listen;
  const adminPort = adminPortOf(config.listen);
  const url = await listenAt(`${host}:${port}`, "--host and --port", () => gateway.listen(host, port));
  const adminUrl = await listenAt(
    `${adminHost}:${adminPort}, for status pages and administration`,
    "--admin-port",
    () => gateway.listenAdmin(adminHost, adminPort),
  );
  return { url, adminUrl };
}

async function listenAt(where: string, flags: string, begin: () => Promise<{ url: string }>): Promise<string> {
  try {
    return (await begin()).url;
  } catch (error) {
    throw refusedBySystem(`cannot listen on ${where}`, error, `choose another with ${flags}`);
  }
}
