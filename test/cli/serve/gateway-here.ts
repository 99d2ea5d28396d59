import type { TestContext } from "node:test";
import { Command } from "commander";
import { pino } from "pino";
import { addServeOptions, servePlan } from "#cli/serve/serve-options.ts";
import { GATEWAY } from "#serve/parts.ts";
import type { ServePlan } from "#serve/plan/serve-plan.ts";

/** All of a gateway but what it writes to stdout, which the tests' reports go to. */
const PARTS = [
  "listening",
  "picker",
  "observer",
  "endpoints",
  "warmUp",
  "peers",
  "watching",
  "readiness",
  "directory",
] as const;
const READY_MILLIS_MAX = 60_000;

export interface GatewayHere {
  readonly url: string;
  /** Of status pages and administration. */
  readonly adminUrl: string;
  /** Its log so far, a line of JSON for each event. */
  readonly log: () => string;
  readonly stop: () => Promise<void>;
}

/**
 * A gateway in this process by the flags of `gnomon serve`, once it is ready, for tests that look at what it does and not at
 * its process: one that starts in a process of its own takes a second of CPU. It has no warm-up unless the test asks for one.
 */
export async function gatewayHere(
  t: TestContext,
  flags: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<GatewayHere> {
  const variables = { GNOMON_LISTEN_WARM_UP_MILLIS: "0", ...environment };
  const plan = planOf(flags, variables);
  let lines = "";
  const log = pino({ level: plan.config.log.level }, { write: (line: string) => void (lines += line) });
  const given = { plan, environment: variables, log, logLinesDropped: () => 0, leaving: new AbortController().signal };
  const { parts, stop: end } = await GATEWAY.start(given, {}, PARTS);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= end());
  t.after(stop);
  const { readiness, directory, listening } = parts;
  const isReady = (): boolean =>
    readiness.waitsFor().length === 0 && directory.all().every(({ state }) => state !== "waiting");
  for (const since = performance.now(); !isReady(); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (performance.now() - since > READY_MILLIS_MAX) throw new Error(`it waits for ${readiness.waitsFor().join()}`);
  }
  return { ...listening, log: () => lines, stop };
}

function planOf(flags: readonly string[], environment: Readonly<Record<string, string>>): ServePlan {
  let plan: ServePlan | undefined;
  const command = addServeOptions(new Command("serve")).action((given: Parameters<typeof servePlan>[0]) => {
    plan = servePlan(given, environment);
  });
  command.parse(flags, { from: "user" });
  return plan!;
}
