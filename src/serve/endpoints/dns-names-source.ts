import { namedStepTimes } from "#config/named-step-times.ts";
import { secretOf } from "../process/secrets.ts";
import type { SourceKind } from "./source-kind.ts";

/** Names of the DNS whose addresses are engines. */
export const NAMES_SOURCE: SourceKind = {
  key: "discovery.dns",
  isNamed: ({ dns }) => dns.length > 0,
  follow: async ({ keeper, report, sources: board }, config, environment) => {
    const { DnsSource } = await import("#live/discovery/dns-source.ts");
    const { dns, dnsServers, dnsTimeoutMillis, dnsMillisMin, dnsMillisMax } = config.discovery;
    return new DnsSource({
      names: dns.map(({ apiKeyEnv, engine, ...name }) => ({
        ...name,
        stepTimes: namedStepTimes(engine),
        kvCapacityTokens: name.kvCapacityTokens ?? config.prefix.capacityTokens,
        apiKey: secretOf(apiKeyEnv, environment),
      })),
      servers: dnsServers,
      timeoutMillis: dnsTimeoutMillis,
      millisMin: dnsMillisMin,
      millisMax: dnsMillisMax,
      setTargets: (targets) => keeper.setTargets("dns", targets),
      report,
      board,
    });
  },
};
