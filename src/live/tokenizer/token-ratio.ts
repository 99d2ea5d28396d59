import { LRUCache } from "lru-cache";

/** Weight of the newest prompt in the moving sums. */
const WEIGHT_NEW = 0.05;
/** A ratio further from the initial one is not of the text it is compared with. */
const FACTOR_MAX = 8;

interface Sums {
  units: number;
  tokens: number;
}

/**
 * Units (bytes, characters or foreign tokens) per token, per model, learned from the engine's own counts:
 *
 *     ratio = ewma(units) / ewma(tokens)
 *
 * Both sums decay together, so a prompt weighs by its length, and short prompts, whose template outweighs them, hardly move it.
 */
export class TokenRatio {
  readonly #initial: number;
  readonly #models: LRUCache<string, Sums>;

  constructor(initial: number, modelsMax: number) {
    this.#initial = initial;
    this.#models = new LRUCache({ max: modelsMax });
  }

  unitsPerToken(model: string): number {
    const sums = this.#models.get(model);
    return sums === undefined ? this.#initial : sums.units / sums.tokens;
  }

  /** Returns whether the observation was taken. */
  learn(model: string, units: number, tokens: number): boolean {
    if (!(tokens > 0) || !(units > 0)) return false;
    const ratio = units / tokens;
    if (ratio * FACTOR_MAX < this.#initial || ratio > FACTOR_MAX * this.#initial) return false;
    const sums = this.#models.get(model);
    if (sums === undefined) {
      this.#models.set(model, { units, tokens });
      return true;
    }
    sums.units += WEIGHT_NEW * (units - sums.units);
    sums.tokens += WEIGHT_NEW * (tokens - sums.tokens);
    return true;
  }
}
