import { LRUCache } from "lru-cache";

/** Weight of the newest prompt against all before it, for one of `LONG_TOKENS` or more; a shorter one weighs less. */
const WEIGHT_NEW = 0.05;
const LONG_TOKENS = 128;
/** Tokens around a prompt that are not of its text: a chat template's. */
const AROUND_TOKENS_MAX = 64;
/** What such a token costs the fit against one that a prompt is off by: prompts of one length show a ratio, not these. */
const AROUND_COST = 0.1;
/** A ratio further from the initial one is not of the text it is compared with. */
const FACTOR_MAX = 8;

/** How a text's length becomes tokens: `tokensAround + units / unitsPerToken`. */
export interface TokenEstimate {
  readonly tokensAround: number;
  readonly unitsPerToken: number;
}

/** Fading sums over what was observed: its weight, units u, tokens t, u^2 and u t. */
interface Sums {
  weight: number;
  u: number;
  t: number;
  uu: number;
  ut: number;
  estimate: TokenEstimate;
}

/**
 * Tokens of a text by its length in units (bytes, characters or foreign tokens), per model, learned from the engine's own
 * counts. Least squares with fading sums,
 *
 *     tokens = a + b * units
 *
 * held towards a = 0 by AROUND_COST, and begun with the initial ratio as one prompt of LONG_TOKENS would show it. So a
 * greeting, which is template for the most part, moves `a` and not the ratio by which long prompts are measured.
 */
export class TokenRatio {
  readonly #initial: TokenEstimate;
  readonly #longUnits: number;
  readonly #models: LRUCache<string, Sums>;

  constructor(unitsPerToken: number, modelsMax: number) {
    this.#initial = { tokensAround: 0, unitsPerToken };
    this.#longUnits = LONG_TOKENS * unitsPerToken;
    this.#models = new LRUCache({ max: modelsMax });
  }

  of(model: string): TokenEstimate {
    return this.#models.get(model)?.estimate ?? this.#initial;
  }

  /** Returns whether the observation was taken. */
  learn(model: string, units: number, tokens: number): boolean {
    if (!(tokens > 0) || !(units > 0)) return false;
    const expected = units / this.#initial.unitsPerToken;
    if (tokens > FACTOR_MAX * expected + AROUND_TOKENS_MAX || tokens * FACTOR_MAX < expected) return false;
    let sums = this.#models.get(model);
    if (sums === undefined) {
      const uu = this.#longUnits * this.#longUnits;
      sums = { weight: 0, u: 0, t: 0, uu, ut: uu / this.#initial.unitsPerToken, estimate: this.#initial };
      this.#models.set(model, sums);
    }
    const keep = 1 - WEIGHT_NEW * Math.min(1, units / this.#longUnits);
    sums.weight = keep * sums.weight + 1;
    sums.u = keep * sums.u + units;
    sums.t = keep * sums.t + tokens;
    sums.uu = keep * sums.uu + units * units;
    sums.ut = keep * sums.ut + units * tokens;
    sums.estimate = this.#fit(sums);
    return true;
  }

  #fit({ weight, u, t, uu, ut }: Sums): TokenEstimate {
    const { unitsPerToken } = this.#initial;
    const a = Math.min(AROUND_TOKENS_MAX, Math.max(0, (t * uu - ut * u) / ((1 + AROUND_COST) * weight * uu - u * u)));
    const tokensPerUnit = (ut - a * u) / uu;
    const low = unitsPerToken / FACTOR_MAX;
    const high = unitsPerToken * FACTOR_MAX;
    return { tokensAround: a, unitsPerToken: Math.min(high, Math.max(low, 1 / Math.max(tokensPerUnit, 1 / high))) };
  }
}
