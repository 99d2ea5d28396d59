import { type GatewayCounters, newCounters } from "#live/metrics/gateway-counters.ts";

/** The counters of several gateways as those of one. */
export function summedCounters(all: readonly GatewayCounters[]): GatewayCounters {
  const sum = newCounters() as unknown as Record<string, number | Record<string, number>>;
  for (const counters of all) {
    for (const [name, value] of Object.entries(
      counters as unknown as Record<string, number | Record<string, number>>,
    )) {
      const so = sum[name];
      if (typeof value === "number") sum[name] = value + (typeof so === "number" ? so : 0);
      else if (typeof so === "object")
        for (const [label, count] of Object.entries(value)) so[label] = (so[label] ?? 0) + count;
    }
  }
  return sum as unknown as GatewayCounters;
}
