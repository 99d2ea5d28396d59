import { type Refusal, refusal } from "../http/errors.ts";
import type { Fields } from "../base/fields.ts";
import type { GatewayParts } from "../gateway/gateway-parts.ts";
import type { Identity } from "../http/identity.ts";
import type { RequestHeaders } from "../http/request-headers.ts";
import type { Promised } from "../request/slo-rules.ts";

export interface AskedBy {
  readonly identity: Identity;
  /** That decides; "" is the router's default. */
  readonly profile: string;
  readonly promised: Promised;
}

interface Asking {
  readonly context: GatewayParts;
  readonly headers: RequestHeaders;
  readonly model: string;
  tenant: string;
}

/** Who asks, by which profile, and what they are promised; a refusal where the profile or a target cannot be. */
export function askedBy(asking: Asking, fields: Fields | undefined): AskedBy | Refusal {
  const { context, headers, model } = asking;
  const identity = context.identifier.identify(headers, fields);
  asking.tenant = identity.tenant;
  const profile = context.profileOf(model, identity.profile);
  if (typeof profile !== "string") return profile;
  const promised = context.slo.of(headers, identity, model);
  if (typeof promised === "string") return refusal("bad-request", promised);
  return { identity, profile, promised };
}
