import { FIRST_POLICY_VERSION } from "#core/plugin/spec.ts";
import type { Router, RouterOptions } from "#core/router.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { policyOf } from "./policy.ts";
import type { PolicyPast } from "./policy-keeper.ts";
import { pastPolicies } from "./saved-policies.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { StateFolder } from "../state/state-folder.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { withScrape } from "./live-scrape.ts";

/** What a gateway begins with: its plan, or what was in force when it ended. */
export interface LiveState {
  /** Undefined where nothing is kept. */
  readonly folder: StateFolder | undefined;
  readonly past: PolicyPast | undefined;
  /** The plan with the policy in force. */
  readonly inForce: ServePlan;
  readonly policyVersion: number;
}

/** Throws CommandFailure where the folder cannot be had. What is in it and cannot be read is reported and left alone. */
function liveState(plan: ServePlan, { report }: Pick<FaultLog, "report">): LiveState {
  const { directory } = plan.config.policy;
  if (directory === undefined)
    return { folder: undefined, past: undefined, inForce: plan, policyVersion: FIRST_POLICY_VERSION };
  const folder = new StateFolder(directory, report);
  const past = pastOf(folder, plan, report);
  const last = past?.versions.at(-1);
  if (last === undefined) return { folder, past, inForce: plan, policyVersion: FIRST_POLICY_VERSION };
  const { config, profile, profiles } = last.policy;
  return { folder, past, inForce: { ...plan, config, profile, profiles }, policyVersion: last.version };
}

/** Conversations are written down while a rollout keeps them on their arms. */
export function rememberSessions(
  { folder }: Pick<LiveState, "folder">,
  router: () => Router,
): Pick<RouterOptions, "sessionRemembered"> {
  if (folder === undefined) return {};
  return {
    sessionRemembered: (prompt, conversation) => {
      if (router().rollouts.readsSessions) folder.conversations.add(prompt, conversation);
    },
  };
}

function pastOf(folder: StateFolder, plan: ServePlan, report: FaultLog["report"]): PolicyPast | undefined {
  try {
    const start = policyOf(plan, plan.config);
    return pastPolicies(folder.readPolicy(), start, plan.config, new Date().toISOString());
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const done = "the configuration is in force; numbers of policies begin anew";
    report({ kind: "state-failed", detail: `${folder.path}: ${error.message}`, done });
    return undefined;
  }
}

/** What outlives a restart. */
export const statePart = part({
  name: "state",
  needs: ["plan", "log", "logs"],
  start: ({ plan, log, logs: { faults } }: Pick<GatewayContext, "plan" | "log"> & { readonly logs: Logs }) =>
    withScrape(liveState(plan, faults), log, faults),
  stop: ({ folder }) => folder?.conversations.close(),
});

interface Logs {
  readonly faults: Pick<FaultLog, "report">;
}
