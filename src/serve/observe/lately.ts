import { DecisionRing, ShownDecisions } from "#live/status/shown-decisions.ts";
import { ProcessWatch } from "#live/status/process-watch.ts";
import { RecentTraffic } from "#live/status/recent-traffic.ts";
import type { Intake } from "#live/base/intake.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/** What happened of late, for the status pages. */
export const latelyPart = part({
  name: "lately",
  needs: ["plan", "intake"],
  start: ({ plan, intake }: Pick<GatewayContext, "plan"> & { readonly intake: Intake }) => {
    const decisions = new DecisionRing(plan.config.admin.decisionsKept);
    const shownDecisions = new ShownDecisions();
    for (const listener of [decisions, shownDecisions]) intake.listen(listener);
    return { decisions, shownDecisions, traffic: new RecentTraffic(), process: new ProcessWatch() };
  },
});
