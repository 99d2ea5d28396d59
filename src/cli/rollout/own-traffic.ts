import { ConfigError } from "#config/config-error.ts";
import type { LongWork } from "../long-work/long-work.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";
import { type Traffic, trafficOf } from "../what-if/what-if-traffic.ts";

/**
 * Traffic with its own fleet and rate: those of a recorded trace are what they were, and other ones would be an answer
 * that nobody gave. Throws ConfigError where flags ask for others, and what trafficOf throws.
 */
export async function ownTrafficOf(path: string, flags: TrafficFlags, work?: LongWork): Promise<Traffic> {
  const traffic = await trafficOf(path, flags, work);
  const { otherEndpoints, otherRates, setting } = traffic;
  const count = setting.endpoints.length;
  const problems = [
    ...(otherEndpoints.length === 0
      ? []
      : [
          `--endpoints: expected with a foreign workload, got ${otherEndpoints.join(", ")} with a recorded trace, ` +
            `whose own count is ${count}; tune --engines and what-if --endpoints ask about other fleets`,
        ]),
    ...(otherRates.length === 0
      ? []
      : [
          `--rate-scale: expected with a foreign workload, got ${otherRates.join(", ")} with a recorded trace; ` +
            "trace scale makes a workload of it",
        ]),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  return traffic;
}
