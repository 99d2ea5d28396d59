import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Simulation } from "./simulation.ts";

/** Lets a decision be made while one endpoint alone takes requests, without anybody hearing of it. */
export function withOthersCordoned<T>({ fleet, router, clock }: Simulation, endpoint: EndpointId, decide: () => T): T {
  const others = fleet.specs.map((spec) => spec.endpoint.id).filter((id) => id !== endpoint);
  for (const id of others) router.accept({ kind: "endpoint-cordoned", at: clock, endpoint: id });
  const decision = decide();
  for (const id of others) router.accept({ kind: "endpoint-uncordoned", at: clock, endpoint: id });
  return decision;
}
