/**
 * Child process: a gateway as `serve` runs it, with an emulated fleet in a process of its own. Sends its parent its URL;
 * asked for a mark, it reports what its event loop and its decisions took since the mark before.
 *
 *     shadow-gateway.ts SECTION.KEY=JSON...
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { pino } from "pino";
import { loadConfig } from "#config/load.ts";
import { loadProfile } from "#config/profile-file.ts";
import { startSources } from "#serve/endpoint-sources.ts";
import { createLiveStack } from "#serve/live-stack.ts";

/** What happened between two marks; times in microseconds. */
export interface GatewayMark {
  readonly decisions: readonly number[];
  /** Processor time of the gateway's own thread, and of the process with all its threads. */
  readonly threadCpuMicros: number;
  readonly processCpuMicros: number;
  readonly loopDelayP50Micros: number;
  readonly loopDelayP99Micros: number;
  readonly loopDelayMaxMicros: number;
}

const LOOP_DELAY_RESOLUTION_MILLIS = 1;
const NANOS_PER_MICRO = 1000;
const READY_POLL_MILLIS = 50;

const config = loadConfig({
  file: undefined,
  environment: {},
  overrides: process.argv.slice(2).map((text) => {
    const [key = "", value = ""] = text.split("=");
    return { path: key.split("."), value: JSON.parse(value) as unknown, from: text };
  }),
});
const profile = loadProfile(config.routing.profile);
const plan = { config, profile, profiles: { [profile.name]: profile } };
const stack = await createLiveStack(plan, {}, pino({ level: "silent" }));
let decisions: number[] = [];
stack.tap.listen({
  accepted: (_input, decision, micros) => {
    if (decision !== undefined) decisions.push(micros);
  },
});
const { url } = await stack.gateway.listen("127.0.0.1", 0);
const { url: adminUrl } = await stack.gateway.listenAdmin("127.0.0.1", 0);
const sources = await startSources(stack, config, [], {});
await stack.warmUp();
while (stack.readiness.waitsFor().length > 0) await new Promise((resolve) => setTimeout(resolve, READY_POLL_MILLIS));

const loop = monitorEventLoopDelay({ resolution: LOOP_DELAY_RESOLUTION_MILLIS });
loop.enable();
let before = used();

function used(): { readonly thread: number; readonly process: number } {
  const thread = process.threadCpuUsage();
  const all = process.cpuUsage();
  return { thread: thread.user + thread.system, process: all.user + all.system };
}

process.on("message", () => {
  const now = used();
  const mark: GatewayMark = {
    decisions,
    threadCpuMicros: now.thread - before.thread,
    processCpuMicros: now.process - before.process,
    loopDelayP50Micros: loop.percentile(50) / NANOS_PER_MICRO,
    loopDelayP99Micros: loop.percentile(99) / NANOS_PER_MICRO,
    loopDelayMaxMicros: loop.max / NANOS_PER_MICRO,
  };
  process.send!(mark);
  decisions = [];
  loop.reset();
  before = used();
});
process.once("disconnect", () => {
  void (async () => {
    await stack.close();
    await sources.stop();
    process.exit(0);
  })();
});
process.send!({ url, adminUrl });
