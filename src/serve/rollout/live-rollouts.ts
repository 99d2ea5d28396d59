import type { RolloutState } from "#core/rollout/rollout-state.ts";
import type { Config } from "#config/schema.ts";
import { nowMicros, WALL_START_MICROS } from "#live/base/clock.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Intake } from "#live/base/intake.ts";
import { policyFromDocument } from "../policy/policy-admin.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import type { PolicyKeeper } from "../policy/policy-keeper.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { LosingEngines } from "./losing-engines.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { RolloutKeeper } from "./rollout-keeper.ts";
import { RolloutMemory } from "./rollout-memory.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { LiveShare } from "../share/live-share.ts";

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "cordon" | "cordonOf">;
  readonly policy: LivePolicy;
  readonly state: { readonly folder: StateFolder | undefined };
  readonly logs: { readonly faults: Pick<FaultLog, "report"> };
  /** What replicas share; undefined where there is none beside this gateway. */
  readonly share: Pick<LiveShare, "store" | "replica" | "retryPolicy"> | undefined;
  /** Asks what all rollouts wait for, at every look; undefined where nothing is predicted. */
  readonly predictor: { follow(rollouts: Rollouts): void } | undefined;
}

/** The rollouts of a running gateway; `restore` makes them what they were when it ended. */
function liveRollouts({
  plan,
  intake,
  directory,
  keeper: fleet,
  policy,
  state: { folder },
  logs,
  share,
  predictor,
}: Needed): RolloutKeeper {
  const { config } = plan;
  const { report } = logs.faults;
  const policies = policy.keeper;
  const engines = new LosingEngines({
    all: () => directory.all(),
    isCordoned: (id) => fleet.cordonOf(id) !== "",
    cordon: (id) => fleet.cordon(id, true),
    report,
  });
  const keeper = new RolloutKeeper({
    intake,
    now: nowMicros,
    memory: new RolloutMemory({ folder, wallStartMicros: WALL_START_MICROS, report }),
    lookMillis: config.rollout.lookMillis,
    keptMax: config.rollout.keptMax,
    bytesMax: config.policy.documentBytesMax,
    predicts: predictor !== undefined,
    policy: () => policies.inForce,
    promote: (state, arm, by) => promoted(policies, config, state, arm, by, intake),
    hasPromoted: (rollout, arm) => {
      const note = promotionNote(rollout, arm);
      return policies.history().versions.some((one) => one.source === SOURCE && one.note === note);
    },
    followed: (book) => {
      engines.follow(book);
      predictor?.follow(intake.router.rollouts);
    },
    report,
    store: share?.store,
    replica: share?.replica,
    // What was refused because a rollout compared it need not wait for another change of the file.
    takenBack: () => {
      policy.retry();
      share?.retryPolicy();
    },
  });
  keeper.follow(config.rollout.start);
  policy.heed(keeper);
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
  { router }: Intake,
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

export const rolloutsPart = part({
  name: "rollouts",
  needs: ["plan", "intake", "directory", "keeper", "policy", "state", "logs", "share", "predictor"],
  start: (needed: Needed) => liveRollouts(needed),
  settings: ["rollout.start"],
  change: (rollouts, { config }) => rollouts.follow(config.rollout.start),
  stop: (rollouts) => rollouts.end(),
});

interface Observed {
  readonly rollouts: RolloutKeeper;
  /** Those that must see what the router is given. */
  readonly recorder: unknown;
  readonly metrics: unknown;
  readonly lately: unknown;
}

/** What was under way before a restart goes on, before anything else reaches the router. */
export const restoredPart = part({
  name: "restored",
  needs: ["rollouts", "recorder", "metrics", "lately"],
  start: ({ rollouts }: Observed) => rollouts.restore(),
});
