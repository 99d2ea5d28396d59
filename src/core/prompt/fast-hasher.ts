import type { BlockHasher, ChainValue } from "./block-hasher.ts";

/** The golden ratio in 32 bits. */
const STEP = 0x9e3779b9;

/**
 * Two hashes, each a bijection of its 32 bits for any given word, so that blocks which differ in one word always differ:
 *
 *     low  = imul(rotl(low, 13) ^ word, 0x9e3779b1)
 *     high = imul(rotl(high, 15) + word, 0x85ebca77) + low
 *
 * At the end of a block both are finalised (murmur3's finalizer) and crossed. Words 2 and 3 of the chain value are the
 * key: they enter every block and never change; words 4 to 7 are ignored. A constant enters with them, or zeros would
 * hash to zero for ever.
 */
export class FastHasher implements BlockHasher {
  readonly blockWords: number;

  constructor(blockWords: number) {
    this.blockWords = blockWords;
  }

  extend(
    value: ChainValue,
    words: Int32Array,
    firstWord: number,
    blocks: number,
    hashes: Int32Array,
    firstBlock: number,
  ): void {
    const lowKey = value[2]!;
    const highKey = value[3]!;
    const blockWords = this.blockWords;
    let low = value[0]!;
    let high = value[1]!;
    let word = firstWord;
    let at = 2 * firstBlock;
    for (let block = 0; block < blocks; block++) {
      low = ((low ^ lowKey) + STEP) | 0;
      high = ((high ^ highKey) - STEP) | 0;
      for (const end = word + blockWords; word < end; word++) {
        const next = words[word]!;
        low = Math.imul(((low << 13) | (low >>> 19)) ^ next, 0x9e3779b1);
        high = (Math.imul((((high << 15) | (high >>> 17)) + next) | 0, 0x85ebca77) + low) | 0;
      }
      const crossed = finalise(low ^ ((high << 16) | (high >>> 16)));
      high = finalise((high + crossed) | 0);
      low = crossed;
      hashes[at] = low;
      hashes[at + 1] = high;
      at += 2;
    }
    value[0] = low;
    value[1] = high;
  }
}

function finalise(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
