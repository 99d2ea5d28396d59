import type { Snapshot } from "./snapshot.ts";

/** Requests that wait at the engine: scraped while fresh, else our own in flight, which is never less than unknown. */
export function waitingRequests(snapshot: Snapshot): number {
  const scraped = snapshot.freshness === "fresh" ? snapshot.load?.waiting : undefined;
  return scraped ?? snapshot.requestsInFlight;
}

/** Requests in the engine's batch: scraped while fresh, else our own in flight. */
export function runningRequests(snapshot: Snapshot): number {
  const scraped = snapshot.freshness === "fresh" ? snapshot.load?.running : undefined;
  return scraped ?? snapshot.requestsInFlight;
}

/**
 * The engine's queue and batch as scraped, plus our own in flight, which counts a request twice once it shows in a
 * scrape. BLIS's effective load; without a scrape our own in flight alone.
 */
export function scrapedAndOwnRequests(snapshot: Snapshot): number {
  const load = snapshot.freshness === "fresh" ? snapshot.load : undefined;
  return (load?.waiting ?? 0) + (load?.running ?? 0) + snapshot.requestsInFlight;
}

/** Prompt tokens that the endpoint would have to compute for this request, at least 1: an engine recomputes the last. */
export function newTokens({ hitTokens }: Pick<Snapshot, "hitTokens">, promptTokens: number): number {
  return Math.max(1, promptTokens - hitTokens);
}
