export interface LoadImbalance {
  /** Largest number in flight at one endpoint over the mean of all, weighted by time; 1 is balance. Null: one endpoint. */
  readonly mean: number | null;
  readonly max: number | null;
}

/** When requests were in flight, and where; times in any one unit. */
export interface Spans {
  /** Requests. */
  readonly size: number;
  readonly endpoints: number;
  readonly sent: ArrayLike<number>;
  readonly ended: ArrayLike<number>;
  /** Place of a request's endpoint, from 0; -1 where it is not known. */
  readonly endpointOf: (request: number) => number;
}

/**
 * How unevenly requests were in flight over the endpoints that served at least one, from sending to the end as the
 * driver saw them. Moments with fewer requests in flight than endpoints are left out: they cannot be even.
 */
export function imbalanceOf({ size, endpoints, sent, ended, endpointOf }: Spans): LoadImbalance {
  if (endpoints < 2) return { mean: null, max: null };
  // Even numbers are sendings, odd ones endings of request number >> 1; an ending comes first where times are equal.
  const events = Uint32Array.from({ length: size * 2 }, (_, i) => i);
  const timeOf = (event: number) => (event % 2 === 0 ? sent : ended)[event >> 1] ?? 0;
  events.sort((a, b) => timeOf(a) - timeOf(b) || (b % 2) - (a % 2) || a - b);
  const inFlight = new Float64Array(endpoints);
  let total = 0;
  let before = 0;
  let weighted = 0;
  let weight = 0;
  let max = 0;
  for (const event of events) {
    const at = timeOf(event);
    if (total >= endpoints && at > before) {
      const ratio = (Math.max(...inFlight) * endpoints) / total;
      weighted += ratio * (at - before);
      weight += at - before;
      max = Math.max(max, ratio);
    }
    before = at;
    const endpoint = endpointOf(event >> 1);
    if (endpoint < 0) continue;
    const step = event % 2 === 0 ? 1 : -1;
    inFlight[endpoint] = (inFlight[endpoint] ?? 0) + step;
    total += step;
  }
  return weight === 0 ? { mean: null, max: null } : { mean: weighted / weight, max };
}
