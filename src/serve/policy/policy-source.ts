import type { PolicyOutcome } from "#live/admin/policy-admin.ts";
import type { Policy } from "./policy.ts";

/** What a source reads a proposal against. */
export interface PolicyGround {
  /** Undefined for one that is not remembered. */
  readonly remembered: (version: number) => Policy | undefined;
  readonly inForce: Policy;
  /** What the configuration file held last, or the start of the gateway. */
  readonly configured: Policy;
}

/** A change that somebody asks for. */
export interface PolicyProposal {
  readonly source: string;
  /** Who, as far as the source knows. */
  readonly by: string;
  readonly note: string;
  /** Check it and change nothing. */
  readonly dryRun?: boolean;
  /** What stands in the way gives way. */
  readonly force?: boolean;
  /** Refuse it unless this version is in force. */
  readonly ifVersion?: number | undefined;
  /** The whole policy; throws ConfigError with all that is wrong. Waits for nothing and changes nothing. */
  readonly read: (ground: PolicyGround) => Policy;
  /**
   * Of a source that holds a policy and offers it again whenever that changes: `inForce` with what differs between
   * `before`, which it held last, and `asked`. What it did not change stays, whoever changed it since. Throws ConfigError.
   */
  readonly over?: (inForce: Policy, before: Policy, asked: Policy) => Policy;
}

/** The one way to change the policy of a running gateway, whatever the source. Synchronous; never throws. */
export type OfferPolicy = (proposal: PolicyProposal) => PolicyOutcome;

/** Where policies come from: watches something, and offers what it finds there. */
export interface PolicySource {
  readonly name: string;
  start(offer: OfferPolicy): void;
  /** What it offered last and was refused is offered again at its next look: what stood in the way may be gone. */
  retry(): void;
  /** Resolves when nothing will be offered any more. */
  stop(): Promise<void>;
}
