import type { SlowAnswer } from "./slow-answers.ts";
import type { TokenRow } from "./token-ledger.ts";
import type { TokenSummary } from "./token-summary.ts";

export interface WhyAnswer {
  readonly inForce: string;
  /** The policy that it is held against. */
  readonly against: string;
  /** Of all requests, or of the one that was asked about. */
  readonly tokens: TokenSummary;
  readonly request?: TokenRow;
  readonly slow: SlowAnswer;
  /** Ids of the prompts that stood longest in others' way, as `slow.ahead.longest` has them. */
  readonly ahead: readonly string[];
  /** Requests that are not explained, by reason. */
  readonly left: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
}
