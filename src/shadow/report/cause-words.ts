import type { Cause } from "../candidate/cause.ts";

/** What became of a group of requests, in a few words: "moved: lost prefix (-512 tokens), hotter endpoint (+3.2)". */
export function causeWords({ moved, cached, inFlight, cachedTokensChange, inFlightChange }: Cause): string {
  const tokens = `${cachedTokensChange > 0 ? "+" : ""}${cachedTokensChange.toFixed(0)} tokens`;
  const load = `${inFlightChange > 0 ? "+" : ""}${inFlightChange.toFixed(1)} in flight`;
  const prefix = { less: `lost prefix (${tokens})`, same: "same prefix", more: `found prefix (${tokens})` }[cached];
  const queue = { less: `cooler endpoint (${load})`, same: "same load", more: `hotter endpoint (${load})` }[inFlight];
  return `${moved ? "moved" : "not moved"}: ${prefix}, ${queue}`;
}
