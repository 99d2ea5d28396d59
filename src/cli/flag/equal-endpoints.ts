import type { Endpoint } from "#core/endpoint/endpoint.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";

/** So many endpoints of which nothing is known, as a simulation sizes them by its engine. */
export function equalEndpoints(count: number): Endpoint[] {
  return numberedIds("endpoint", count).map((id) => ({
    id,
    models: [],
    labels: {},
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  }));
}
