import type { Outcome } from "#core/endpoint/outcome.ts";
import type { PeerNews } from "#core/peer-news.ts";

/** Reports of another version are not read but for their head, which stays as it is up to the replica's name. */
export const WIRE_VERSION = 3;

/**
 * Bits of a charge: its tokens are exact; another endpoint computes its prompt; its client named a user; plugins noted
 * something.
 */
export const EXACT = 1;
export const PREFILL = 2;
export const USER = 4;
export const NOTED = 8;

/** Bits of a note. */
export const BOUND = 1;
export const WARM = 2;
export const TURN = 4;
export const LOAD = 8;
export const FRESH = 16;
export const COLD = 32;

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
