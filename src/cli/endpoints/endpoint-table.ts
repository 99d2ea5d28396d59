import Table from "cli-table3";
import type { EndpointControl } from "#live/admin/endpoint-admin.ts";

/** Endpoints as an operator drives them, a row each. */
export function endpointTable(endpoints: readonly EndpointControl[]): string {
  const head = [
    "endpoint",
    "state",
    "cordoned by",
    "drain",
    "requests in flight",
    "of other gateways",
    "kept from it by",
  ];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const { id, state, cordonedBy, drain, requestsInFlight, peerRequestsInFlight, kept = "" } of endpoints)
    table.push([id, state, cordonedBy, drain, requestsInFlight, peerRequestsInFlight, kept]);
  return table.toString();
}
