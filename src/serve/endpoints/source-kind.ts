import type { Config } from "#config/schema.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import type { SourceBoard } from "#live/endpoints/source-board.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { LivePolicy } from "../policy/live-policy.ts";
import type { Environment } from "../plan/gateway-context.ts";

/** Whom a source of endpoints gives what it knows. */
export interface SourceTarget {
  readonly keeper: Pick<FleetKeeper, "setTargets">;
  readonly report: (event: KeeperEvent) => void;
  /** How the sources stand. */
  readonly sources: SourceBoard;
  /** What a cluster states of requests beside their endpoints. */
  readonly policy: Pick<LivePolicy, "workloads">;
}

/** A source that is followed. */
export interface FollowedSource {
  stop(): Promise<void>;
}

/** A place where endpoints may come from, as the configuration's section `discovery` names it. */
export interface SourceKind {
  /** The key of the configuration that names it. */
  readonly key: string;
  isNamed(discovery: Config["discovery"]): boolean;
  /**
   * Follows it; a file's list was taken by then, others' is awaited. Throws ConfigError, or CommandFailure, where that cannot
   * be read.
   */
  follow(target: SourceTarget, config: Config, environment: Environment): FollowedSource | Promise<FollowedSource>;
}
