import type { Roles } from "../disaggregation/roles.ts";
import type { DisaggregationSpec } from "../plugin/spec.ts";
import type { Profile } from "./profile.ts";

/** How a profile shares requests between an endpoint that computes the prompt and one that answers. */
export interface PrefillStages {
  readonly spec: DisaggregationSpec;
  readonly roles: Roles;
  /** Chooses who computes the prompt. */
  readonly prefill: Profile;
}
