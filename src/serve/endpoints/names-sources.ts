import type { Config } from "#config/schema.ts";

/** Whether a configuration names any place where endpoints come from; else an emulated fleet is started. */
export function namesSources({ endpoints, discovery }: Pick<Config, "endpoints" | "discovery">): boolean {
  const { kind, dns, file } = discovery;
  return endpoints.length > 0 || kind === "kubernetes" || dns.length > 0 || file !== undefined;
}
