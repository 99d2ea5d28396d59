import { nameHash, randomFor, type Random } from "#core/base/random.ts";

/** Ids as vLLM makes them, from a seed. */
export class HexIds {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = randomFor(seed, nameHash("ids"));
  }

  /** @param words 8 hexadecimal digits each */
  next(words: number): string {
    let text = "";
    for (let i = 0; i < words; i++) text += this.#random.below(0x1_0000_0000).toString(16).padStart(8, "0");
    return text;
  }
}
