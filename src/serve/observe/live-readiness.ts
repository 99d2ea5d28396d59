import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Readiness } from "#live/status/readiness.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/** Whether the gateway should get traffic: not any more from the moment in which it is asked to stop. */
export const readinessPart = part({
  name: "readiness",
  needs: ["directory", "leaving"],
  start: ({ directory, leaving }: Pick<GatewayContext, "leaving"> & { readonly directory: EndpointDirectory }) => {
    const readiness = new Readiness(directory);
    readiness.draining = leaving.aborted;
    leaving.addEventListener("abort", () => (readiness.draining = true), { once: true });
    return readiness;
  },
});
