import { nowMicros } from "#live/base/clock.ts";
import type { Intake } from "#live/base/intake.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { type LastingFault, LastingFaults } from "#live/keeper/lasting-faults.ts";
import { UnsureForecasts } from "#live/keeper/unsure-forecasts.ts";
import { UnservedEndpoints } from "#live/keeper/unserved-endpoints.ts";
import type { GatewayMetrics } from "#live/metrics/metrics.ts";
import type { ShadowStatus } from "#live/metrics/shadow-status.ts";
import type { LiveShadow } from "./live-shadow.ts";
import { part } from "../assembly/part.ts";

/** As the alerts GnomonPredictionOff and GnomonRolloutWithoutEvidence have them. */
const ERROR_MAX = 0.3;
const FORECAST_HOLD_MICROS = 30 * 60 * 1_000_000;
const EVIDENCE_HOLD_MICROS = 60 * 60 * 1_000_000;

interface Watched {
  readonly intake: Intake;
  readonly metrics: Pick<GatewayMetrics, "placedRequests">;
  readonly shadow: LiveShadow | undefined;
  readonly rollouts: { view(): { readonly rollouts: readonly RolloutView[] } };
  readonly logs: { readonly faults: FaultLog };
}

/** Writes a line about what is wrong by going on, and makes no event by itself. */
export const lastingPart = part({
  name: "lasting",
  needs: ["intake", "metrics", "shadow", "rollouts", "logs"],
  start: ({ intake, metrics, shadow, rollouts, logs }: Watched) => {
    const unserved = new UnservedEndpoints((at) => intake.router.endpointRows(at));
    const unsure = new UnsureForecasts(() => metrics.placedRequests);
    return new LastingFaults({
      faults: (at) => [
        ...unserved.faults(at),
        ...unsure.faults(),
        ...forecastsOff(shadow?.status().evaluation),
        ...withoutEvidence(rollouts.view().rollouts),
      ],
      report: logs.faults.report,
      now: nowMicros,
    });
  },
  stop: (watch) => watch.stop(),
});

export function forecastsOff(evaluation: ShadowStatus["evaluation"]): LastingFault[] {
  return Object.entries(evaluation?.modelError ?? {}).flatMap(([metric, error]): LastingFault[] =>
    Math.abs(error) <= ERROR_MAX
      ? []
      : [
          {
            kind: "forecasts-off",
            key: metric,
            detail: `simulated ${metric} is ${Math.round(100 * Math.abs(error))} % ${error < 0 ? "below" : "above"} what is observed`,
            done: "predictions go on and say so; `gnomon calibrate` on a trace shows where the engine model is off",
            holdMicros: FORECAST_HOLD_MICROS,
          },
        ],
  );
}

export function withoutEvidence(rollouts: readonly Pick<RolloutView, "name" | "phase" | "arms">[]): LastingFault[] {
  return rollouts.flatMap(({ name, phase, arms }) =>
    phase !== "running"
      ? []
      : arms.map((arm): LastingFault => ({
          kind: "rollout-without-evidence",
          key: `${name} ${arm.name} ${arm.total.requests}`,
          detail: `arm ${arm.name} of ${name} got no request: it finds nothing out like this`,
          done: "the rollout goes on; `gnomon rollout status` has what it waits for",
          holdMicros: EVIDENCE_HOLD_MICROS,
        })),
  );
}
