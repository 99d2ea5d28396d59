import type { PeerNews } from "#core/request/peer-news.ts";
import { type FieldType, listOf } from "#trace/codec/field-type.ts";
import { peerNews } from "#trace/codec/peer-table.ts";

/** Reports of another version are not read but for their head, which stays as it is up to the replica's name. */
export const WIRE_VERSION = 4;

/** Of one report: four times as many requests as a gateway has in flight by default. */
const NEWS_MAX = 65_536;

export const newsRows: FieldType<readonly PeerNews[]> = listOf(peerNews, NEWS_MAX);

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
