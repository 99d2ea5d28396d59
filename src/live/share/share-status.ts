import type { PeerCounts } from "#core/peer/peer-counts.ts";
import type { KeptLimitsStatus } from "./kept-limits.ts";

export interface ShareEvent {
  readonly kind: "sharing-lost" | "sharing-recovered" | "sharing-refused";
  readonly detail: string;
}

/** Why nothing is shared with a replica: it sends another version, hashes in another way, or has this one's name. */
export type ApartReason = "version" | "settings" | "name";

/** A replica that is there and that this one shares nothing with. */
export interface ApartRow {
  readonly replica: string;
  readonly reason: ApartReason;
  readonly detail: string;
  /** Since anything of it came. */
  readonly silentMillis: number;
}

export interface ShareCounts {
  /** Requests that were reported to others, and the bytes of the reports with news, and of all. */
  requestsSent: number;
  newsBytesSent: number;
  bytesSent: number;
  reportsSent: number;
  reportsReceived: number;
  bytesReceived: number;
  /** News that nobody got, as the link was away or full. */
  newsDropped: number;
  /** Requests let in meanwhile that limits of others will not count, being too many. */
  requestsForgotten: number;
  /** What subjects had used of limits that a replica which came was not given, being too many. */
  windowsLeftOut: number;
  /** Reports that cannot be read, those of another version, and those of replicas whose hashes mean something else. */
  reportsUnreadable: number;
  reportsOtherVersion: number;
  reportsForeign: number;
  /** Prompts left out, as what they continue was not received. */
  chainsUnknown: number;
  /** Prompts learned from reports that were sent before this replica listened. */
  chainsPast: number;
  /** Replicas that went without a word, as their lease ended. */
  leasesEnded: number;
  /** Times that the link was lost. */
  losses: number;
}

export function newShareCounts(): ShareCounts {
  return {
    requestsSent: 0,
    newsBytesSent: 0,
    bytesSent: 0,
    reportsSent: 0,
    reportsReceived: 0,
    bytesReceived: 0,
    newsDropped: 0,
    requestsForgotten: 0,
    windowsLeftOut: 0,
    reportsUnreadable: 0,
    reportsOtherVersion: 0,
    reportsForeign: 0,
    chainsUnknown: 0,
    chainsPast: 0,
    leasesEnded: 0,
    losses: 0,
  };
}

/** Another replica as this one sees it. */
export interface PeerRow {
  readonly replica: string;
  /** Since anything of it came. */
  readonly silentMillis: number;
  readonly requestsInFlight: number;
}

export interface ShareStatus {
  readonly replica: string;
  readonly link: string;
  /** alone: this replica routes by its own view. */
  readonly state: "starting" | "shared" | "alone";
  readonly aloneMillis: number;
  /** Why it is alone. */
  readonly aloneWhy?: string;
  /** Of own reports until they came back; undefined before the first. */
  readonly lagMillis: { readonly p50: number; readonly p99: number } | undefined;
  readonly peers: readonly PeerRow[];
  readonly counts: ShareCounts & PeerCounts;
  /** Blocks of prompts that were sent, and those that the others had from earlier reports. */
  readonly blocksWritten: number;
  readonly blocksKnown: number;
  /** What limits have counted, as it outlives all replicas; undefined where it does not. */
  readonly limits: KeptLimitsStatus | undefined;
  /** Replicas that are there, and that this one shares nothing with. */
  readonly apart: readonly ApartRow[];
}
