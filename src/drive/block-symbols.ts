import { assert } from "#core/base/assert.ts";
import { mix32, randomFor } from "#core/base/random.ts";

const ID_BITS_LOW = 0x1_0000_0000;

/**
 * Content of a block: `count` symbols in [0, radix) that depend on `id` and `seed` alone. The first ones are the
 * digits of a bijection of the id, so that different ids differ as soon as `count` symbols can distinguish 2^53 ids (7
 * of 256, 4 of 30,000), and mostly in the very first; the rest are drawn from a stream of the id's own.
 */
export function writeBlockSymbols(
  id: number,
  seed: number,
  radix: number,
  count: number,
  write: (i: number, symbol: number) => void,
): void {
  assert(Number.isSafeInteger(id) && id >= 0, "block id is a safe integer");
  const high = Math.floor(id / ID_BITS_LOW);
  const low = mix32((id % ID_BITS_LOW) ^ mix32(high ^ mix32(seed)));
  let digits = high * ID_BITS_LOW + low;
  const digitsCount = Math.ceil(53 / Math.log2(radix));
  const written = Math.min(count, digitsCount);
  for (let i = 0; i < written; i++) {
    write(i, digits % radix);
    digits = Math.floor(digits / radix);
  }
  if (count <= digitsCount) return;
  const random = randomFor(low, high);
  for (let i = digitsCount; i < count; i++) write(i, random.below(radix));
}
