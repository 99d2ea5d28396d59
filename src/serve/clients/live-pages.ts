import type { Intake } from "#live/base/intake.ts";
import { openPages } from "#live/status/open-pages.ts";
import { type StatusOptions, statusRoutes } from "#live/status/status.ts";
import { part } from "../assembly/part.ts";
import type { LiveShadow } from "../observe/live-shadow.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import { gnomonVersion } from "../process/gnomon-version.ts";
import { type Tokens, adminTokens } from "../process/secrets.ts";
import type { LiveShare } from "../share/live-share.ts";

/** What opens the pages below /gnomon/. */
export const tokensPart = part({
  name: "tokens",
  needs: ["plan", "environment"],
  start: ({ plan, environment }: Pick<GatewayContext, "plan" | "environment">) => adminTokens(plan.config, environment),
});

interface Needed
  extends
    Pick<StatusOptions, "directory" | "keeper" | "sources" | "metrics" | "readiness" | "blockSizes">,
    Pick<StatusOptions, "rollouts" | "autopilot"> {
  readonly intake: Intake;
  readonly share: LiveShare | undefined;
  readonly lately: Pick<StatusOptions, "decisions" | "shownDecisions" | "traffic" | "process">;
  readonly kvEvents: { readonly status: Pick<StatusOptions, "kvEvents"> };
  readonly shadow: LiveShadow | undefined;
  readonly policy: LivePolicy;
  readonly tokens: Tokens;
}

/** Probes and metrics, status pages and administration. */
export const pagesPart = part({
  name: "pages",
  needs: [
    "directory",
    "keeper",
    "sources",
    "metrics",
    "readiness",
    "blockSizes",
    "rollouts",
    "autopilot",
    "intake",
    "share",
    "lately",
    "kvEvents",
    "shadow",
    "policy",
    "tokens",
  ],
  start: ({ intake, share, lately, kvEvents, shadow, policy, tokens, ...parts }: Needed) => {
    const status: StatusOptions = {
      ...parts,
      ...lately,
      ...tokens,
      ...kvEvents.status,
      router: intake.router,
      ...(share && { share: () => share.status() }),
      ...(shadow && { shadow: shadow.status }),
      policy: policy.admin,
      version: gnomonVersion(),
    };
    return { openRoutes: openPages(status), adminRoutes: statusRoutes(status) };
  },
});
