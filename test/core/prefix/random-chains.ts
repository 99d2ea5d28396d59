import type { BlockChain } from "#core/prompt/block-chain.ts";
import { fastHasher } from "#core/prompt/block-hash.ts";
import type { Random } from "#core/base/random.ts";

/** The chain of a text of one word per block. */
export function chainOf(text: Int32Array): BlockChain {
  const hashes = new Int32Array(2 * text.length);
  fastHasher(1).extend(new Int32Array(8), text, 0, text.length, hashes, 0);
  return { hashes, length: text.length, blockTokens: 16 };
}

/** Chains that share prefixes the way prompts do: new texts, continuations, branches, and shorter repeats. */
export class RandomChains {
  readonly #random: Random;
  readonly #lengthMax: number;
  readonly #texts: Int32Array[] = [];
  readonly #textsMax = 40;

  constructor(random: Random, lengthMax: number) {
    this.#random = random;
    this.#lengthMax = lengthMax;
  }

  next(): BlockChain {
    const text = this.#nextText();
    if (this.#texts.length < this.#textsMax) this.#texts.push(text);
    else this.#texts[this.#random.below(this.#textsMax)] = text;
    return chainOf(text);
  }

  #nextText(): Int32Array {
    const random = this.#random;
    const known = this.#texts[random.below(Math.max(1, this.#texts.length))];
    if (known === undefined || random.next() < 0.15) return this.#fresh(random.below(this.#lengthMax + 1));
    const shared = known.subarray(0, random.next() < 0.5 ? known.length : random.below(known.length + 1));
    if (random.next() < 0.3) return shared.slice();
    const added = this.#fresh(random.below(this.#lengthMax - shared.length + 1));
    return Int32Array.of(...shared, ...added);
  }

  /** Three words only, so that texts also meet by chance. */
  #fresh(length: number): Int32Array {
    return Int32Array.from({ length }, () => this.#random.below(3));
  }
}
