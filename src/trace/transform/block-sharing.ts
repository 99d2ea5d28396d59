import { mix32 } from "#core/base/random.ts";

const BLOCKS_MAX = 262_144;

/**
 * How much of a traffic's prompts was seen before in it: the hit ratio of one cache without bounds. Every block is
 * looked at until BLOCKS_MAX different ones are known; from then on every second hash, then every fourth, so that memory
 * stays bounded and the ratio an unbiased estimate.
 */
export class BlockSharing {
  readonly #blocksMax: number;
  #seen = new Set<number>();
  /** Blocks are looked at whose hash has this many zero bits at its end. */
  #zeroBits = 0;
  #blocks = 0;
  #repeated = 0;

  constructor(blocksMax: number = BLOCKS_MAX) {
    this.#blocksMax = blocksMax;
  }

  /** Looked-at blocks over all blocks; 1 is exact. */
  get sampled(): number {
    return 2 ** -this.#zeroBits;
  }

  /** Share of blocks that an earlier prompt had at the same place after the same beginning; NaN without blocks. */
  get share(): number {
    return this.#blocks === 0 ? NaN : this.#repeated / this.#blocks;
  }

  add(blockIds: Float64Array): void {
    for (let i = 0; i < blockIds.length; i++) {
      const id = blockIds[i]!;
      if (!this.#isSampled(id)) continue;
      const weight = 2 ** this.#zeroBits;
      this.#blocks += weight;
      if (this.#seen.has(id)) this.#repeated += weight;
      else this.#remember(id);
    }
  }

  #remember(id: number): void {
    this.#seen.add(id);
    while (this.#seen.size > this.#blocksMax) {
      this.#zeroBits++;
      const kept = new Set<number>();
      for (const known of this.#seen) if (this.#isSampled(known)) kept.add(known);
      this.#seen = kept;
    }
  }

  #isSampled(id: number): boolean {
    if (this.#zeroBits === 0) return true;
    const hash = mix32((id | 0) ^ mix32(Math.floor(id / 0x1_0000_0000)));
    return (hash & (2 ** this.#zeroBits - 1)) === 0;
  }
}
