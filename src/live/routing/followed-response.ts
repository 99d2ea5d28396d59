import { type Refusal, refusal } from "../http/errors.ts";
import type { ResponsePlace } from "../beside/stored-responses.ts";
import type { AskingRequest } from "./ask.ts";
import type { ParsedRequest } from "../request/parse-request.ts";

/** Endpoints that a request may go to, any where undefined; or why it can go to none. */
export type Subset = readonly string[] | Refusal | undefined;

/** The stored response that a request goes on behind; undefined where there is none. */
export function followedBy({ route }: Pick<AskingRequest, "route">, { fields }: ParsedRequest): string | undefined {
  const id = route.dialect === "responses" ? fields?.["previous_response_id"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/**
 * Those of a request's endpoints that have the response which it follows: only the engine that made it can go on behind it.
 * Where nobody knows which one did, any engine answers that.
 */
export function subsetFollowing(asking: AskingRequest, parsed: ParsedRequest): Subset | Promise<Subset> {
  const id = followedBy(asking, parsed);
  const { shared, headers, routeId: requestId, subset } = asking;
  if (id === undefined) return subset;
  const { keepsAuthorization: dropAuthorization, engineFields } = shared;
  const call = { headers, requestId, dropAuthorization, withheld: engineFields.headers };
  const place = shared.responses.placeOf(id, call);
  return place instanceof Promise ? place.then((known) => within(known, id, subset)) : within(place, id, subset);
}

function within(place: ResponsePlace, id: string, subset: readonly string[] | undefined): Subset {
  if (place === "gone") return refusal("unknown-response", `Response with id '${id}' not found.`, "response_id");
  if (place === "unknown") return subset;
  return place.filter((endpoint) => subset === undefined || subset.includes(endpoint));
}
