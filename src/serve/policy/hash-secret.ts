import { randomBytes } from "node:crypto";
import type { Config } from "#config/schema.ts";
import type { LiveState } from "./live-state.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

const SECRET_BYTES = 32;

/**
 * Keys block hashes, sessions and tenants: of the variable that the configuration names, else what is kept, else made
 * anew.
 */
function hashSecret(
  { prefix }: Config,
  environment: Readonly<Record<string, string | undefined>>,
  { folder }: LiveState,
): Uint8Array {
  const given = prefix.secretEnv === undefined ? undefined : environment[prefix.secretEnv];
  return given === undefined ? (folder?.secret() ?? randomBytes(SECRET_BYTES)) : Buffer.from(given, "utf8");
}

export const secretPart = part({
  name: "secret",
  needs: ["plan", "environment", "state"],
  start: ({ plan, environment, state }: Pick<GatewayContext, "plan" | "environment"> & { readonly state: LiveState }) =>
    hashSecret(plan.config, environment, state),
});
