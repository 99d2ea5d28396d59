import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { Config } from "#config/schema.ts";
import { nowMicros, WALL_START_MICROS } from "#live/base/clock.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import { policyFromDocument } from "../policy/document-desk.ts";
import type { PolicyKeeper } from "../policy/policy-keeper.ts";
import type { SharedStore } from "../state/shared-store.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { RolloutKeeper } from "./rollout-keeper.ts";
import { RolloutMemory } from "./rollout-memory.ts";

export interface LiveRolloutsOptions {
  readonly config: Config;
  readonly tap: RouterTap;
  readonly policies: PolicyKeeper;
  readonly folder: StateFolder | undefined;
  readonly store: SharedStore | undefined;
  /** This gateway among those that share it. */
  readonly replica: string | undefined;
  /** A rollout was rolled back. */
  readonly takenBack: () => void;
  readonly report: FaultLog["report"];
}

/** The rollouts of a running gateway; `restore` makes them what they were when it ended. */
export function liveRollouts({
  config,
  tap,
  policies,
  folder,
  store,
  replica,
  takenBack,
  report,
}: LiveRolloutsOptions): RolloutKeeper {
  const keeper = new RolloutKeeper({
    tap,
    now: nowMicros,
    memory: new RolloutMemory({ folder, wallStartMicros: WALL_START_MICROS, report }),
    lookMillis: config.rollout.lookMillis,
    keptMax: config.rollout.keptMax,
    bytesMax: config.policy.documentBytesMax,
    predicts: config.shadow.enabled,
    policy: () => policies.inForce,
    promote: (state, arm, by) => promoted(policies, config, state, arm, by, tap),
    hasPromoted: (rollout, arm) => {
      const note = promotionNote(rollout, arm);
      return policies.history().versions.some((one) => one.source === SOURCE && one.note === note);
    },
    report,
    store,
    replica,
    takenBack,
  });
  keeper.follow(config.rollout.start);
  return keeper;
}

const SOURCE = "rollout";

function promotionNote(rollout: string, arm: string): string {
  return `${rollout} promoted ${arm}`;
}

/** The promoted arm's profile becomes the policy's: of the rollout's model, or the default. */
function promoted(
  policies: PolicyKeeper,
  running: Config,
  { plan }: RolloutState,
  arm: string,
  by: string,
  { router }: RouterTap,
): readonly string[] {
  const profile = plan.arms.find(({ name }) => name === arm)?.profile ?? "";
  if (profile === "") return [];
  const spec = router.rollouts.spec(plan.name)?.profiles[profile];
  const routing = plan.model === "" ? { profile } : { models: { [plan.model]: profile } };
  const outcome = policies.offer({
    source: SOURCE,
    by,
    note: promotionNote(plan.name, arm),
    read: (ground) => {
      const isKnown = Object.hasOwn(ground.inForce.document.profiles, profile);
      const document = isKnown || spec === undefined ? { routing } : { routing, profiles: { [profile]: spec } };
      return policyFromDocument(document, "merge", ground, running, {});
    },
  });
  return outcome.outcome === "refused" ? outcome.problems : [];
}
