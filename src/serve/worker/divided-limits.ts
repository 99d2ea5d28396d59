import type { GatewayLimits } from "#live/request/limits.ts";

/** Those of all requests together, of which each worker has its part. */
const SHARED = [
  "bodyBytesInFlightMax",
  "requestsInFlightMax",
  "clientConnectionsMax",
  "upstreamConnectionsMax",
  "continuationBytesKept",
  "knownBodyBytesKept",
  "answersWaitingMax",
] as const satisfies readonly (keyof GatewayLimits)[];

/** A worker's part of the limits, so that those of all together are the configured ones; one body always has room. */
export function dividedLimits(limits: Partial<GatewayLimits>, among: number): Partial<GatewayLimits> {
  const divided: Record<string, number> = {};
  for (const name of SHARED) {
    const limit = limits[name];
    if (limit !== undefined) divided[name] = Math.max(1, Math.floor(limit / among));
  }
  const { bodyBytesMax = 0 } = limits;
  const bytes = divided["bodyBytesInFlightMax"];
  if (bytes !== undefined) divided["bodyBytesInFlightMax"] = Math.max(bodyBytesMax, bytes);
  return { ...limits, ...divided };
}
