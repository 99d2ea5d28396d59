import type { Outcome } from "#core/endpoint/outcome.ts";
import type { PeerNews } from "#core/peer-news.ts";

/** Reports of another version are not read. */
export const WIRE_VERSION = 1;

/** By number. */
export const NEWS_KINDS: readonly PeerNews["kind"][] = [
  "charged",
  "first-token",
  "progress",
  "failed",
  "released",
  "held",
  "breaker",
];

export const OUTCOMES: readonly Outcome[] = ["ok", "failed", "aborted", "timeout", "refused"];
