import { type Refusal, refusal } from "../http/errors.ts";
import type { Fields } from "../base/fields.ts";
import type { Identifier, Identity } from "../http/identity.ts";
import type { RequestHeaders } from "../http/request-headers.ts";
import type { Promised, SloRules } from "../request/slo-rules.ts";

export interface AskedBy {
  readonly identity: Identity;
  /** That decides; "" is the router's default. */
  readonly profile: string;
  readonly promised: Promised;
}

/** By what clients are known, and what they get. */
export interface ClientParts {
  readonly identifier: Identifier;
  readonly slo: SloRules;
  /** Profile for a model, where the request asked for `asked`; "" is the router's default. */
  readonly profileOf: (model: string, asked: string) => string | Refusal;
}

interface Asking {
  readonly shared: ClientParts;
  readonly headers: RequestHeaders;
  readonly model: string;
  tenant: string;
}

/** Who asks, by which profile, and what they are promised; a refusal where the profile or a target cannot be. */
export function askedBy(asking: Asking, fields: Fields | undefined): AskedBy | Refusal {
  const { shared, headers, model } = asking;
  const identity = shared.identifier.identify(headers, fields);
  asking.tenant = identity.tenant;
  const profile = shared.profileOf(model, identity.profile);
  if (typeof profile !== "string") return profile;
  const promised = shared.slo.of(headers, identity, model);
  if (typeof promised === "string") return refusal("bad-request", promised);
  return { identity, profile, promised };
}
