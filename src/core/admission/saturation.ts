import type { Snapshot } from "../endpoint/snapshot.ts";
import type { SaturationSpec } from "./admission-spec.ts";

/**
 * How full an endpoint is, from 0; full from 1 on. Signals that are not fresh count for nothing, the requests that this
 * router sent always do: no more wait there than it has, and where it has none nothing is full.
 *
 *     max(min(waiting, load) / waitingMax, kv / kvUtilizationMax, load / requestsMax)
 */
export function fullness(snapshot: Snapshot, spec: SaturationSpec): number {
  const requestsMax = spec.requestsMax ?? snapshot.endpoint.concurrencyMax;
  const requests = requestsMax === undefined ? 0 : snapshot.effectiveLoad / requestsMax;
  if (snapshot.freshness !== "fresh" || snapshot.effectiveLoad === 0) return requests;
  const waiting = Math.min(snapshot.load?.waiting ?? 0, snapshot.effectiveLoad) / spec.waitingMax;
  const kv = (snapshot.load?.kvUtilization ?? 0) / spec.kvUtilizationMax;
  return Math.max(requests, waiting, kv);
}
