import type { ResolvedProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import type { TableSource } from "#live/tokenizer/table/table-source.ts";

/** What `serve` was asked to do. */
export interface ServePlan extends ResolvedProfiles {
  readonly config: Config;
  /** Its name among gateways that share what they do; draws differ by it. */
  readonly replica?: string | undefined;
  /** The file that it was read from, where there is one. */
  readonly configFile?: string;
  /** Where a tokenizer's table comes from, if that was begun already. */
  readonly tables?: TableSource;
  /** Reads file, environment and flags again; throws ConfigError with all that is wrong. */
  readonly reload?: () => ServePlan;
}
