import { pino, type Logger } from "pino";
import { GATEWAY } from "#serve/parts.ts";
import type { ServePlan } from "#serve/plan/serve-plan.ts";

export type StartedGateway = Awaited<ReturnType<typeof startedGateway>>;

/** The parts of a gateway that does not listen by itself, or those that are named; the caller closes it. */
export async function startedGateway(
  plan: ServePlan,
  environment: Readonly<Record<string, string>> = {},
  names: Parameters<typeof GATEWAY.start>[2] = ["gateway"],
  log: Logger = pino({ level: "silent" }),
) {
  const given = { plan, environment, log, logLinesDropped: () => 0, leaving: new AbortController().signal };
  const { parts, stop } = await GATEWAY.start(given, {}, names);
  let stopped: Promise<void> | undefined;
  /** However often it is asked for. */
  const close = (): Promise<void> => (stopped ??= stop());
  return { ...parts, close };
}
