import type { Micros } from "../base/units.ts";
import type { BlockChain } from "../prompt/block-chain.ts";

/** A prompt as it was sent to an endpoint, and what of it was believed to be cached there. */
export interface ExpectedHit {
  readonly sentAt: Micros;
  readonly blocks: BlockChain;
  readonly hitTokens: number;
  /** As `sent` returned it. */
  readonly recentTokens: number | undefined;
}

/** Tokens that have to be expected for their absence to be a sign: a block or two may always be evicted. */
export const EXPECTED_TOKENS_MIN = 128;
/** Answers without any token from before, one after the other, that show an empty cache; the first raises the suspicion. */
export const MISSES_UNTIL_EMPTY = 2;
/** Blocks sent since a suspicion; with more of them it is dropped. */
const RECENT_BLOCKS_MAX = 65_536;

/**
 * Judges from an endpoint's answers whether its engine lost its cache without a word: somebody reset it, or it was replaced.
 *
 * An answer that had no cached token at all where many were expected raises a suspicion. From there on an answer counts for
 * it that had nothing but what was sent there since, although more was expected; and one against it, which ends it, that
 * had a block of before. What evicts single chains leaves others, and they end it.
 */
export class ResetJudge {
  #emptyAt: Micros = -Infinity;
  #misses = 0;
  #recent: Set<number> | undefined;

  /** A prompt is sent there: tokens at its beginning that were sent there since a suspicion; undefined without one. */
  sent({ hashes, length, blockTokens }: BlockChain): number | undefined {
    const recent = this.#recent;
    if (recent === undefined) return undefined;
    let known = 0;
    while (known < length && recent.has(keyOf(hashes, known))) known++;
    for (let i = known; i < length; i++) recent.add(keyOf(hashes, i));
    if (recent.size > RECENT_BLOCKS_MAX) this.#acquit();
    return known * blockTokens;
  }

  /** It answered, and stated how many tokens were cached; true where its cache was emptied before. */
  answered(at: Micros, { sentAt, blocks, hitTokens, recentTokens }: ExpectedHit, cachedTokens: number): boolean {
    // What was expected before the cache was known to be empty was expected wrongly.
    if (sentAt <= this.#emptyAt) return false;
    if (this.#recent === undefined) {
      if (hitTokens >= EXPECTED_TOKENS_MIN && cachedTokens === 0) this.#suspect(blocks);
      return false;
    }
    // Of one that was on its way as the suspicion began nobody knows where its cached tokens are from.
    if (recentTokens === undefined && cachedTokens > 0) return false;
    const known = recentTokens ?? 0;
    if (cachedTokens >= known + blocks.blockTokens) this.#acquit();
    else if (hitTokens - known >= EXPECTED_TOKENS_MIN) this.#misses++;
    if (this.#misses < MISSES_UNTIL_EMPTY) return false;
    this.#acquit();
    this.#emptyAt = at;
    return true;
  }

  #suspect(blocks: BlockChain): void {
    this.#recent = new Set();
    this.#misses = 1;
    this.sent(blocks);
  }

  #acquit(): void {
    this.#recent = undefined;
    this.#misses = 0;
  }
}

/** 53 of a block's 64 bits. */
function keyOf(hashes: Int32Array, block: number): number {
  return (hashes[2 * block]! >>> 0) + (hashes[2 * block + 1]! & 0x1f_ffff) * 2 ** 32;
}
