import { otherDecides } from "#config/tap-section.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Readiness } from "#live/status/readiness.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

interface Needed extends Pick<GatewayContext, "plan" | "leaving"> {
  readonly directory: EndpointDirectory;
}

/** Whether the gateway should get traffic: not any more from the moment in which it is asked to stop. */
export const readinessPart = part({
  name: "readiness",
  needs: ["plan", "directory", "leaving"],
  start: ({ plan, directory, leaving }: Needed) => {
    const readiness = new Readiness(directory, !otherDecides(plan.config.tap));
    readiness.draining = leaving.aborted;
    leaving.addEventListener("abort", () => (readiness.draining = true), { once: true });
    return readiness;
  },
});
