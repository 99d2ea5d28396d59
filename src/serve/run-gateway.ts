import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { openLog } from "./observe/live-log.ts";
import { GATEWAY } from "./parts.ts";
import type { ServePlan } from "./plan/serve-plan.ts";
import { heedSignals } from "./process/early-stop.ts";
import { requirePackages } from "./process/optional-packages.ts";
import { boundStart, exitSoon, stopSignal } from "./process/stop-signal.ts";

/** Runs a gateway until it is asked to stop. */
export async function runGateway(plan: ServePlan): Promise<void> {
  requirePackages(plan.config);
  await heedSignals();
  const leaving = new AbortController();
  const stopped = stopSignal().then((signal) => leaving.abort(signal));
  const started = boundStart(stopped);
  const { log, dropped } = openLog(plan.config.log);
  const running = await GATEWAY.start(
    { plan, environment: process.env, log, logLinesDropped: dropped, leaving: leaving.signal },
    {
      leaving: leaving.signal,
      report: (part, problem) => log.error({ event: "stop-failed", part, problem }, "a part did not stop well"),
    },
  );
  started();
  await stopped;
  await running.stop();
  log.info({ event: "stopped", upSeconds: Math.round(performance.now() / MILLIS_PER_SECOND) }, "stopped");
  exitSoon();
}
