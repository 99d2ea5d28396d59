import { DecisionRing } from "#live/status/decision-ring.ts";
import { RecentTraffic } from "#live/status/recent-traffic.ts";
import { ShownDecisions } from "#live/status/shown-decisions.ts";
import type { StatusOptions } from "#live/status/status.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import type { Config } from "#config/schema.ts";

/** What happened of late, for the status pages. */
export function lately(
  { admin }: Config,
  tap: RouterTap,
): Pick<StatusOptions, "decisions" | "shownDecisions" | "traffic"> {
  const decisions = new DecisionRing(admin.decisionsKept);
  const shownDecisions = new ShownDecisions();
  for (const listener of [decisions, shownDecisions]) tap.listen(listener);
  return { decisions, shownDecisions, traffic: new RecentTraffic() };
}
