import type { Gateway } from "#live/gateway/gateway.ts";
import { adminPortOf } from "#config/listen-section.ts";
import type { Config } from "#config/schema.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { refusedBySystem } from "../process/system-error.ts";

/** Where the gateway listens. */
export interface Listening {
  readonly url: string;
  /** Of status pages and administration. */
  readonly adminUrl: string;
}

/** The gateway's ports, from their opening on; they close as it drains. */
export const listeningPart = part({
  name: "listening",
  needs: ["plan", "gateway"],
  start: ({ plan, gateway }: Pick<GatewayContext, "plan"> & { readonly gateway: Gateway }) =>
    listen(gateway, plan.config),
});

async function listen(gateway: Gateway, config: Config): Promise<Listening> {
  const { host, port, adminHost } = config.listen;
  const adminPort = adminPortOf(config.listen);
  const url = await listenAt(`${host}:${port}`, "--host and --port", () => gateway.listen(host, port));
  const adminUrl = await listenAt(
    `${adminHost}:${adminPort}, for status pages and administration`,
    "--admin-port",
    () => gateway.listenAdmin(adminHost, adminPort),
  );
  return { url, adminUrl };
}

async function listenAt(where: string, flags: string, begin: () => Promise<{ url: string }>): Promise<string> {
  try {
    return (await begin()).url;
  } catch (error) {
    throw refusedBySystem(`cannot listen on ${where}`, error, `choose another with ${flags}`);
  }
}
