import { ELIGIBILITY } from "../endpoint/eligibility.ts";
import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";

/** Whether an endpoint has the role for something. */
export type MayServe = (endpoint: Endpoint) => boolean;

export const ANY_ROLE: MayServe = () => true;

/** Indexes into ELIGIBILITY. */
export const INELIGIBLE = {
  unknownModel: ELIGIBILITY.indexOf("unknown-model"),
  cordoned: ELIGIBILITY.indexOf("cordoned"),
  tried: ELIGIBILITY.indexOf("tried"),
  breaker: ELIGIBILITY.indexOf("breaker"),
  hung: ELIGIBILITY.indexOf("hung"),
  subset: ELIGIBILITY.indexOf("subset"),
  pool: ELIGIBILITY.indexOf("pool"),
  role: ELIGIBILITY.indexOf("role"),
  answers: ELIGIBILITY.indexOf("answers"),
  pair: ELIGIBILITY.indexOf("pair"),
  unhealthy: ELIGIBILITY.indexOf("unhealthy"),
  outlier: ELIGIBILITY.indexOf("outlier"),
  slowStart: ELIGIBILITY.indexOf("slow-start"),
  asleep: ELIGIBILITY.indexOf("asleep"),
};

/** Why an endpoint may not serve a request, before any filter: an index into ELIGIBILITY, 0 where it may. */
export function eligibility(
  state: EndpointState,
  at: Micros,
  { model, subset }: RouteRequest,
  tried: readonly EndpointId[],
  may: MayServe,
): number {
  if (!state.serves(model)) return INELIGIBLE.unknownModel;
  if (!may(state.endpoint)) return INELIGIBLE.role;
  if (subset !== undefined && !subset.includes(state.id)) return INELIGIBLE.subset;
  if (state.cordoned) return INELIGIBLE.cordoned;
  if (state.asleep) return INELIGIBLE.asleep;
  if (tried.includes(state.id)) return INELIGIBLE.tried;
  if (state.slowReturn.standing === "hung") return INELIGIBLE.hung;
  if (state.unhealthy) return INELIGIBLE.unhealthy;
  if (state.outlier.reason(at) !== "") return INELIGIBLE.outlier;
  return state.breaker.allows(at) && state.slowReturn.allows(state.requestsInFlight) ? 0 : INELIGIBLE.breaker;
}
