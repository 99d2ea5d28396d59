import { assert } from "#core/base/assert.ts";
import { mix32 } from "#core/base/random.ts";

/** Ids that one namespace can hold; 2^53 / 2^26 namespaces fit. */
export const LOCAL_IDS_MAX = 67_108_864;

/** A block id that is unique over namespaces: `local` in [0, LOCAL_IDS_MAX). */
export function namespacedBlockId(namespace: number, local: number): number {
  assert(local >= 0 && local < LOCAL_IDS_MAX, "local block id in [0, 2^26)");
  assert(namespace >= 0 && namespace < 134_217_728, "block namespace in [0, 2^27)");
  return namespace * LOCAL_IDS_MAX + local;
}

/**
 * Ids for the blocks of a prompt whose content is known: each depends on the block's content and on the id before it,
 * so equal ids are equal prefixes. 53 bits: among n different blocks the chance that any two share an id is about
 * n^2 / 2^54, 1 in 18,000 for a million.
 *
 * `symbolAt(i)` is the content at position i (a token, a character) as an integer; a last partial block counts.
 */
export function contentBlockIds(length: number, blockLength: number, symbolAt: (i: number) => number): Float64Array {
  const ids = new Float64Array(Math.ceil(length / blockLength));
  let low = 0x6a09e667;
  let high = 0xbb67ae85;
  for (let block = 0; block < ids.length; block++) {
    const end = Math.min(length, (block + 1) * blockLength);
    for (let i = block * blockLength; i < end; i++) {
      const symbol = symbolAt(i);
      low = mix32(low ^ symbol);
      high = (Math.imul(high ^ symbol, 0x01000193) + low) | 0;
    }
    high = mix32(high ^ low);
    ids[block] = (high & 0x1f_ffff) * 0x1_0000_0000 + low;
  }
  return ids;
}
