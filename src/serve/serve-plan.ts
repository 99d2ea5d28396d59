import type { ResolvedProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";

/** What `serve` was asked to do. */
export interface ServePlan extends ResolvedProfiles {
  readonly config: Config;
  /** Its name among gateways that share what they do; draws differ by it. */
  readonly replica?: string | undefined;
  /** The file that it was read from, where there is one. */
  readonly configFile?: string;
  /** Reads file, environment and flags again; throws ConfigError with all that is wrong. */
  readonly reload?: () => ServePlan;
}
