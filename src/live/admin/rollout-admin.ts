import type { StepKind } from "#core/rollout/rollout-state.ts";
import type { RolloutsView, RolloutView } from "./rollout-view.ts";

export type RolloutReply =
  /**
   * It is so from the next decision on. `unkept`: why it may be lost yet, a line each; it is written again and again
   * until it is kept. None where it is.
   */
  | { readonly outcome: "applied"; readonly rollout: RolloutView; readonly unkept: readonly string[] }
  /** It could be; nothing was changed, as was asked for. */
  | { readonly outcome: "checked" }
  /** Nothing was changed. A line each: path, what was expected, what was there. */
  | { readonly outcome: "refused"; readonly problems: readonly string[] };

export interface RolloutStepRequest {
  readonly rollout: string;
  readonly step: Exclude<StepKind, "start">;
  /** The arm to promote. */
  readonly arm?: string;
  readonly reason?: string;
  /** Promote an arm of which nothing good is known all the same. */
  readonly evenSo?: boolean;
  readonly by: string;
}

/** What the gateway's pages know of rollouts, and how the admin API moves them. */
export interface RolloutAdmin {
  /** Bytes that a document may have, as it is sent. */
  readonly bytesMax: number;
  view(): RolloutsView;
  /** Starts a rollout as a document of the configuration's `rollout.start` describes it. */
  start(document: unknown, request: { readonly by: string; readonly dryRun: boolean }): Promise<RolloutReply>;
  step(request: RolloutStepRequest): Promise<RolloutReply>;
  /** Forgets one that has ended. */
  remove(rollout: string): Promise<RolloutReply>;
}
