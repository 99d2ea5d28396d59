import type { NamedProfile } from "#config/profile-file.ts";
import type { Config } from "#config/schema.ts";

/** What `serve` was asked to do. */
export interface ServePlan {
  readonly config: Config;
  readonly profile: NamedProfile;
  /** Every profile that the router is to know, by the name under which requests select it. */
  readonly profiles: Readonly<Record<string, NamedProfile>>;
}
