import type { Random } from "#core/random.ts";

/**
 * The draws with which BLIS breaks ties, in order: Go's Intn of a recorded Int31 sequence. One stream for all
 * decisions, as there.
 */
export class TieDraws implements Random {
  readonly #int31: readonly number[];
  #drawn = 0;

  constructor(int31: readonly number[]) {
    this.#int31 = int31;
  }

  next(): number {
    throw new Error("a tie is broken by below()");
  }

  below(bound: number): number {
    if ((bound & (bound - 1)) === 0) return this.#int31At() & (bound - 1);
    const max = 2_147_483_647 - (2_147_483_648 % bound);
    let value = this.#int31At();
    while (value > max) value = this.#int31At();
    return value % bound;
  }

  #int31At(): number {
    const value = this.#int31[this.#drawn++];
    if (value === undefined) throw new Error(`more than the ${this.#int31.length} recorded draws are needed`);
    return value;
  }
}
