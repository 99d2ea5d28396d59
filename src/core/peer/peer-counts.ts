/** What was done with reports since the start. */
export interface PeerCounts {
  /** Reports that came again, late, from an earlier life, or from more peers than PEERS_MAX. */
  ignoredReports: number;
  /** Times that a report before one was missing. */
  missedReports: number;
  /** Charges beyond PEER_REQUESTS_MAX, or at endpoints that are not here. */
  refusedCharges: number;
  /** News of requests that are not in flight there, as after a report that was missed. */
  strayNews: number;
  /** Open breakers that were not believed, as most of that peer's are open. */
  doubtedBreakers: number;
}

/** Counts before anything came. */
export function newPeerCounts(): PeerCounts {
  return { ignoredReports: 0, missedReports: 0, refusedCharges: 0, strayNews: 0, doubtedBreakers: 0 };
}
