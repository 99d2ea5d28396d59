import type { Config } from "#config/schema.ts";
import { CLUSTER_SOURCE } from "./cluster-source.ts";
import { FILE_SOURCE } from "./endpoints-file-source.ts";
import { NAMES_SOURCE } from "./dns-names-source.ts";
import type { SourceKind } from "./source-kind.ts";

/** Sources of endpoints beside the configuration's own list, in the order in which they are followed. */
export const SOURCES: readonly SourceKind[] = [FILE_SOURCE, NAMES_SOURCE, CLUSTER_SOURCE];

/** Whether a configuration names any place where endpoints come from; else an emulated fleet is started. */
export function namesSources({ endpoints, discovery }: Pick<Config, "endpoints" | "discovery">): boolean {
  return endpoints.length > 0 || SOURCES.some((source) => source.isNamed(discovery));
}
