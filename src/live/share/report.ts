import type { PeerNews } from "#core/peer-news.ts";

/**
 * What one replica sends to the others at once.
 * - news: what it did since the last report. snapshot: all that it has in flight.
 * - alive: nothing, but it is there; hello: it has just come and asks for snapshots; bye: it goes.
 */
export type ReportKind = "news" | "snapshot" | "alive" | "hello" | "bye";

export const REPORT_KINDS: readonly ReportKind[] = ["news", "snapshot", "alive", "hello", "bye"];

export interface Report {
  readonly kind: ReportKind;
  /** Replicas whose hashes and digests mean the same have the same one. */
  readonly fingerprint: number;
  readonly replica: string;
  /** Of this life of the replica: when it began, in milliseconds since 1970. */
  readonly epoch: number;
  /** Counts reports with news or snapshots, from 1; on others, the last such. */
  readonly sequence: number;
  readonly news: readonly PeerNews[];
}
