import type { Outcome } from "#core/endpoint/outcome.ts";
import type { PeerNews } from "#core/peer-news.ts";

/** Reports of another version are not read but for their head, which stays as it is up to the replica's name. */
export const WIRE_VERSION = 2;

/** Bits of a charge: its tokens are exact; another endpoint computes its prompt; its client named a user. */
export const EXACT = 1;
export const PREFILL = 2;
export const USER = 4;

/** By number. */
export const NEWS_KINDS: readonly PeerNews["kind"][] = [
  "charged",
  "first-token",
  "progress",
  "failed",
  "released",
  "held",
  "breaker",
  // Of prompts that are computed at other endpoints than those that answer; nobody else writes it.
  "prefilled",
  "used",
  "window",
];

export const OUTCOMES: readonly Outcome[] = ["ok", "failed", "aborted", "timeout", "refused"];
