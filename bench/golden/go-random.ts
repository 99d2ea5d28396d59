import { readFileSync } from "node:fs";
import type { Random } from "#core/base/random.ts";

const WORDS = 607;
const TAP = 273;
const SEED_MODULUS = 2 ** 31 - 1;
/** Steps of the seeding generator before its values are used. */
const SEED_DISCARDED = 20;
/** Stands for a seed of 0. */
const SEED_FOR_0 = 89_482_311;

const MIXED_IN: BigUint64Array = (() => {
  const text = readFileSync(new URL("go-random-state.json", import.meta.url), "utf8");
  const { words } = JSON.parse(text) as { readonly words: readonly string[] };
  return BigUint64Array.from(words, (word) => BigInt(`0x${word}`));
})();

/**
 * Go's math/rand (version 1) for one seed: the additive lagged Fibonacci generator x[n] = x[n-607] + x[n-273] mod 2^64,
 * whose first 607 words come from a Lehmer generator (48271 mod 2^31 - 1), three draws a word, mixed with a constant
 * table. The peer breaks ties between endpoints with it, so golden cases of any seed need the very same draws.
 */
export class GoRandom implements Random {
  readonly #words = new BigUint64Array(WORDS);
  #tap = 0;
  #feed = WORDS - TAP;

  /** Any 64-bit seed, negative ones too. */
  constructor(seed: bigint) {
    let lehmer = Number(BigInt.asIntN(64, seed) % BigInt(SEED_MODULUS));
    if (lehmer < 0) lehmer += SEED_MODULUS;
    if (lehmer === 0) lehmer = SEED_FOR_0;
    const draw = () => {
      // 2^31 * 48271 is below 2^53.
      lehmer = (lehmer * 48_271) % SEED_MODULUS;
      return BigInt(lehmer);
    };
    for (let i = 0; i < SEED_DISCARDED; i++) draw();
    for (let i = 0; i < WORDS; i++) this.#words[i] = (draw() << 40n) ^ (draw() << 20n) ^ draw() ^ MIXED_IN[i]!;
  }

  next(): number {
    throw new Error("a tie is broken by below()");
  }

  /** Go's Intn for bounds up to 2^31 - 1. */
  below(bound: number): number {
    if ((bound & (bound - 1)) === 0) return this.int31() & (bound - 1);
    const max = 2 ** 31 - 1 - (2 ** 31 % bound);
    let value = this.int31();
    while (value > max) value = this.int31();
    return value % bound;
  }

  /** Go's Int31: the upper 31 of the lower 63 bits. */
  int31(): number {
    this.#tap = (this.#tap + WORDS - 1) % WORDS;
    this.#feed = (this.#feed + WORDS - 1) % WORDS;
    this.#words[this.#feed] = this.#words[this.#feed]! + this.#words[this.#tap]!;
    return Number((this.#words[this.#feed]! >> 32n) & 0x7fff_ffffn);
  }
}

/** The stream with which BLIS breaks ties: its own by name, so that other draws of a run do not move it. */
export function tieBreaks(seed: number): GoRandom {
  return new GoRandom(BigInt(seed) ^ fnv1a64("router"));
}

/** FNV-1a, 64 bits. */
function fnv1a64(text: string): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100_0000_01b3n);
  return hash;
}
