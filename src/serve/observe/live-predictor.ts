import type { Rollouts } from "#core/rollouts.ts";
import { otherDecides } from "#config/tap-section.ts";
import type { Intake } from "#live/base/intake.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { RunHeader } from "#live/recorder/run-lines.ts";
import { part } from "../assembly/part.ts";
import type { LiveShadow } from "./live-shadow.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { Scraped } from "../policy/live-scrape.ts";
import { PredictionThread } from "./prediction-thread.ts";

/** Who predicts the requests of rollouts. */
export interface RolloutPredictor {
  /** Asks what rollouts wait for; called again and again. */
  follow(rollouts: Rollouts): void;
  close(): Promise<void>;
}

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly state: Scraped;
  readonly run: RunHeader;
  readonly intake: Intake;
  readonly logs: { readonly faults: FaultLog };
  readonly shadow: LiveShadow | undefined;
}

function predictorOf({
  plan: { config },
  state,
  run,
  intake,
  logs,
  shadow: live,
}: Needed): RolloutPredictor | undefined {
  const { shadow, rollout } = config;
  if (live !== undefined)
    return paced(shadow.predictMillis, { follow: (rollouts) => live.awaits(rollouts), close: async () => {} });
  if (!rollout.predict || otherDecides(config.tap)) return undefined;
  const { scrapeMillis } = state;
  return paced(
    shadow.predictMillis,
    new PredictionThread({ shadow, scrapeMillis, run, intake, report: logs.faults.report }),
  );
}

/** Not more often than predictions are made. */
function paced(intervalMillis: number, of: RolloutPredictor): RolloutPredictor {
  let nextAt = -Infinity;
  return {
    follow: (rollouts) => {
      const now = performance.now();
      if (now < nextAt) return;
      nextAt = now + intervalMillis;
      of.follow(rollouts);
    },
    close: () => of.close(),
  };
}

/** Undefined where nothing is predicted. */
export const predictorPart = part({
  name: "predictor",
  needs: ["plan", "state", "run", "intake", "logs", "shadow"],
  start: (needed: Needed) => predictorOf(needed),
  stop: (predictor) => predictor?.close(),
});
