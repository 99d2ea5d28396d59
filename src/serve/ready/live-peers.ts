import type { Readiness } from "#live/status/readiness.ts";
import { part } from "../assembly/part.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import type { RolloutKeeper } from "../rollout/rollout-keeper.ts";
import type { LiveShare } from "../share/live-share.ts";

interface Needed {
  readonly share: LiveShare | undefined;
  readonly policy: LivePolicy;
  readonly rollouts: RolloutKeeper;
  readonly readiness: Readiness;
  readonly warmUp: unknown;
}

/** Begins to share, and takes over what other gateways have; then this one can be ready. */
export const peersPart = part({
  name: "peers",
  needs: ["share", "policy", "rollouts", "readiness", "warmUp"],
  start: async ({ share, policy, rollouts, readiness }: Needed) => {
    await share?.start(policy.keeper.offer);
    await Promise.all([policy.caughtUp(), rollouts.caughtUp()]);
    readiness.warm = true;
  },
});

interface Watching {
  readonly policy: LivePolicy;
  readonly rollouts: RolloutKeeper;
  readonly peers: unknown;
  readonly endpoints: unknown;
}

/** From now on sources of policies are watched, and rollouts are looked at by the clock. */
export const watchingPart = part({
  name: "watching",
  needs: ["policy", "rollouts", "peers", "endpoints"],
  start: ({ policy, rollouts }: Watching) => {
    policy.start();
    rollouts.begin();
  },
});
