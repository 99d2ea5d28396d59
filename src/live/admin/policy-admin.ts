/** Where a change of policy came from, when, and what it made. Plain data, as pages show it. */
export interface PolicyVersionView {
  readonly version: number;
  /** ISO 8601. */
  readonly at: string;
  /** "start", "file", "admin" or another source's name. */
  readonly source: string;
  /** Who, as far as the source knows; "" where it does not. */
  readonly by: string;
  /** What was done, where the profiles do not say it, such as "rollback to 3"; else "". */
  readonly note: string;
  readonly defaultProfile: string;
  /** Names of all profiles that stay warm, in order. */
  readonly profiles: readonly string[];
}

/** A policy, whole. */
export interface PolicyView extends PolicyVersionView {
  /** As a later change may send it again; nothing in it names a file. */
  readonly document: object;
}

/** A change that was not made. */
export interface RefusedChange {
  readonly at: string;
  readonly source: string;
  readonly by: string;
  /** A line each: path, what was expected, what was there. */
  readonly problems: readonly string[];
}

export interface PolicyHistory {
  /** Newest first; bounded. */
  readonly versions: readonly PolicyVersionView[];
  /** Versions that the bound let go. */
  readonly forgotten: number;
  /** Newest first; bounded. */
  readonly refused: readonly RefusedChange[];
}

/** A key that has another value; left out where it has none. Lists are values as a whole. */
export interface ChangedKey {
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export type PolicyOutcome =
  /** In force from the next decision on. */
  | {
      readonly outcome: "applied";
      readonly version: number;
      readonly changes: readonly ChangedKey[];
      /** Rollouts that it was forced over, and what became of each, a line each; absent without any. */
      readonly gaveWay?: readonly string[];
      /** Why it may be lost yet, a line each: it is written again and again until it is kept. Absent where it is. */
      readonly unkept?: readonly string[];
    }
  /** It is what is in force already. */
  | { readonly outcome: "unchanged"; readonly version: number }
  /** It could be; nothing was changed, as was asked for. */
  | { readonly outcome: "checked"; readonly version: number; readonly changes: readonly ChangedKey[] }
  /** Nothing was changed. `version` is in force. */
  | { readonly outcome: "refused"; readonly version: number; readonly problems: readonly string[] };

/** How a change is asked for. */
export interface PolicyRequest {
  readonly by: string;
  /** Check it and change nothing. */
  readonly dryRun: boolean;
  /** Roll back the rollouts under way that it would change something of, which refuse it otherwise. */
  readonly force?: boolean;
  /** Refuse it unless this version is in force; undefined for whichever. */
  readonly ifVersion: number | undefined;
}

/** What the gateway's pages know of policies, and how the admin API changes them. */
export interface PolicyAdmin {
  /** Bytes that a document may have, as it is sent. */
  readonly bytesMax: number;
  /** The version in force, or a remembered one; undefined where it is not remembered. */
  view(version?: number): PolicyView | undefined;
  history(): PolicyHistory;
  /** Changes that were asked for, by source and outcome. */
  counts(): readonly { readonly source: string; readonly outcome: string; readonly count: number }[];
  /**
   * Why a restart, or another gateway, may not know of what was changed until now, a line each; resolves soon, with none
   * once it is kept. What is not is tried again until it is.
   */
  unkept(): Promise<readonly string[]>;
  /** `merge` takes the document as a merge patch on the policy in force. */
  change(document: unknown, how: "replace" | "merge", request: PolicyRequest): PolicyOutcome;
  /** Puts a remembered version into force again, under a new number. */
  rollback(version: unknown, request: PolicyRequest): PolicyOutcome;
}
