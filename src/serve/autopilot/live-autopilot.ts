import { choosersOf } from "#core/profile/profile-stages.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import type { Config } from "#config/schema.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { TuneWork } from "#shadow/thread/shadow-message.ts";
import { objectiveNamed } from "#shadow/job/objective.ts";
import { COMMON_SCORERS } from "#shadow/tune/policy-space.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { policyFromDocument } from "../policy/policy-admin.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import type { RolloutKeeper } from "../rollout/rollout-keeper.ts";
import { Autopilot } from "./autopilot.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/** What the shadow searches, and who takes what it finds; there before the policies are. */
export interface LiveTuning {
  readonly work: TuneWork;
  readonly tuned: (answer: TuneAnswer) => void;
  attach(policies: Attached): Autopilot;
}

interface Attached {
  readonly policy: Pick<LivePolicy, "keeper">;
  readonly rollouts: RolloutKeeper;
}

/** Sends everything to the busiest endpoint. */
const NOT_MEANT = "always-busiest";

/** Undefined where the configuration has none. Throws ConfigError where it has no shadow beside it. */
function liveTuning(config: Config, { report }: Pick<FaultLog, "report">): LiveTuning | undefined {
  const { autopilot, shadow } = config;
  if (!autopilot.enabled) return undefined;
  if (!shadow.enabled)
    throw new ConfigError(["autopilot.enabled: expected together with shadow.enabled, which searches"]);
  const { intervalMillis, objective, sloTtftMillis, sloTpotMillis, trialsMax, budgetMillis, gainMin } = autopilot;
  const targets = {
    ...(sloTtftMillis !== undefined && { ttftMicros: sloTtftMillis * MICROS_PER_MILLI }),
    ...(sloTpotMillis !== undefined && { tpotMicros: sloTpotMillis * MICROS_PER_MILLI }),
  };
  const { profiles } = autopilot;
  const bases = (profiles.length > 0 ? profiles : profileNames().filter((name) => name !== NOT_MEANT))
    .map(loadProfile)
    .filter(({ spec }) => profiles.length > 0 || choosersOf(spec).length === 1)
    .map(({ name, spec }) => ({ name, spec }));
  let attached: Autopilot | undefined;
  return {
    work: {
      intervalMillis,
      objective: objectiveNamed(objective, { "*": targets }),
      bases,
      scorers: COMMON_SCORERS,
      trialsMax,
      budgetMillis,
      gainMin,
    },
    tuned: (answer) => void attached?.take(answer),
    attach: ({ policy: { keeper }, rollouts }) => {
      attached = new Autopilot({
        ...autopilot,
        policy: () => ({ version: keeper.latest.version, profile: keeper.inForce.profile.name }),
        addProfile: (name, spec, by) => {
          const outcome = keeper.offer({
            source: "autopilot",
            by,
            note: `${name} to be compared`,
            read: (ground) => policyFromDocument({ profiles: { [name]: spec } }, "merge", ground, config, {}),
          });
          return outcome.outcome === "refused" ? outcome.problems : [];
        },
        rollouts,
        report,
        now: () => new Date(),
      });
      return attached;
    },
  };
}

/** What the shadow searches. */
export const tuningPart = part({
  name: "tuning",
  needs: ["plan", "logs"],
  start: ({ plan, logs }: Pick<GatewayContext, "plan"> & { readonly logs: { readonly faults: FaultLog } }) =>
    liveTuning(plan.config, logs.faults),
});

/** Has what was found compared, and promotes what is better. */
export const autopilotPart = part({
  name: "autopilot",
  needs: ["tuning", "policy", "rollouts"],
  start: ({ tuning, ...policies }: Attached & { readonly tuning: LiveTuning | undefined }) => tuning?.attach(policies),
});
