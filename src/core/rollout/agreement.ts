/** How often an arm that decides too chose what was routed, and what it would have found in caches. */
export interface Agreement {
  decisions: number;
  agreed: number;
  /** Prompt tokens believed to be cached where it would have routed, less those where it was routed; a sum. */
  addedHitTokens: number;
}
