import type { FaultLog } from "#live/log/fault-log.ts";
import { liveRollouts } from "./rollout/live-rollouts.ts";
import type { Scraped } from "./policy/live-scrape.ts";
import type { LiveShare } from "./live-share.ts";
import type { RolloutKeeper } from "./rollout/rollout-keeper.ts";
import type { LiveState } from "./policy/live-state.ts";
import { type LivePolicy, livePolicy, type LivePolicyOptions } from "./policy/live-policy.ts";

export interface LivePolicies {
  readonly policy: LivePolicy;
  readonly rollouts: RolloutKeeper;
  /** Resolves when all that survives a restart is on the disk. */
  stop(): Promise<void>;
}

type Options = Pick<LivePolicyOptions, "plan" | "environment" | "tap" | "gateway"> & {
  readonly state: LiveState & Scraped;
  readonly faults: Pick<FaultLog, "report">;
  /** What replicas share; undefined where there is none beside this gateway. */
  readonly share: Pick<LiveShare, "store" | "replica" | "retryPolicy"> | undefined;
};

/** What decides in a running gateway, and what compares it: neither changes what the other needs. */
export function livePolicies({ state, share, faults: { report }, ...options }: Options): LivePolicies {
  const { plan, tap } = options;
  const { folder, past } = state;
  const policy: LivePolicy = livePolicy({
    ...options,
    report,
    folder,
    store: share?.store,
    past,
    scrapeMillis: state.scrapeMillis,
    objections: (asked, inForce) => rollouts.objections(asked, inForce),
    giveWay: (asked, inForce, by) => rollouts.giveWay(asked, inForce, by),
    reread: ({ rollout }) => rollouts.follow(rollout.start),
  });
  const { config } = plan;
  const rollouts: RolloutKeeper = liveRollouts({
    config,
    tap,
    policies: policy.keeper,
    folder,
    report,
    store: share?.store,
    replica: share?.replica,
    // What was refused because a rollout compared it need not wait for another change of the file.
    takenBack: () => {
      policy.retry();
      share?.retryPolicy();
    },
  });
  return {
    policy,
    rollouts,
    stop: async () => {
      await rollouts.end();
      folder?.conversations.close();
      await policy.stop();
    },
  };
}
