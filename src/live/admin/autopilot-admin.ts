/** How a proposal stands; `replaced` by a later one, `outdated` since the policy has changed. */
export const PROPOSAL_STATES = ["waiting", "started", "declined", "replaced", "outdated", "refused"] as const;
export type ProposalState = (typeof PROPOSAL_STATES)[number];

/** A policy that the shadow found, for people and programs. */
export interface ProposalView {
  /** Names its profile too. */
  readonly name: string;
  /** Wall time, ISO 8601. */
  readonly at: string;
  readonly state: ProposalState;
  /** Who decided, and what stands in the way; "" for nobody and nothing. */
  readonly by: string;
  readonly detail: string;
  /** Version and profile of the policy that it was compared with. */
  readonly policyVersion: number;
  readonly inForce: string;
  readonly objective: string;
  /** Part of the figure in force, or of all requests for goodput; on conversations that the search did not see. */
  readonly gain: number;
  readonly gainLow: number;
  readonly gainHigh: number;
  /** Conversations that it was judged on. */
  readonly sessions: number;
  readonly profile: unknown;
  /** The rollout that is started with a yes. */
  readonly rollout: unknown;
}

export interface AutopilotView {
  /** ask: a person starts the rollout of a proposal. alone: it starts by itself. */
  readonly start: "ask" | "alone";
  /** Searches by their outcome. */
  readonly searches: Readonly<Record<string, number>>;
  /** Why the latest one proposed nothing, or what it proposed; "" before the first. */
  readonly latest: string;
  readonly latestAt: string;
  /** Rollouts that were started from proposals. */
  readonly started: number;
  /** Newest first. */
  readonly proposals: readonly ProposalView[];
}

export type AutopilotOutcome =
  | { readonly outcome: "applied"; readonly proposal: ProposalView }
  | { readonly outcome: "refused"; readonly problems: readonly string[] };

/** What the gateway's pages know of proposals, and how the admin API answers them. */
export interface AutopilotAdmin {
  view(): AutopilotView;
  /** Puts the profile beside those of the policy, and starts the rollout. */
  accept(name: string, by: string): Promise<AutopilotOutcome>;
  decline(name: string, by: string): AutopilotOutcome;
}
