import type { RequestFinished } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";

/** A size this near to a whole number of tokens is taken to be it. */
const WHOLE_WITHIN = 0.005;

interface Sums {
  tokens: number;
  blocks: number;
}

/**
 * Tokens that a block of a recorded prompt stands for. Where blocks are cut from text, each prompt was recorded with the
 * ratio known at its time; but equal blocks are equal text throughout, and must be of equal size, or prompts that share
 * them do not meet at an engine's block size. Hence one size per model, from what its engines counted:
 *
 *     sum of prompt tokens / sum of blocks, part blocks included
 */
export class BlockSizes {
  readonly #models = new Map<string, Sums>();

  constructor(run: readonly { readonly route: RouteRequest; readonly end: RequestFinished }[]) {
    for (const { route, end } of run) {
      if (route.promptTokensExact || end.promptTokens === undefined) continue;
      const sums = this.#models.get(route.model) ?? { tokens: 0, blocks: 0 };
      this.#models.set(route.model, sums);
      sums.tokens += end.promptTokens;
      sums.blocks += route.promptTokens / route.blocks.blockTokens;
    }
  }

  tokensOf({ promptTokensExact, model, blocks }: RouteRequest): number {
    const sums = promptTokensExact ? undefined : this.#models.get(model);
    if (sums === undefined || sums.blocks === 0) return blocks.blockTokens;
    const tokens = sums.tokens / sums.blocks;
    const whole = Math.round(tokens);
    return whole > 0 && Math.abs(tokens - whole) <= WHOLE_WITHIN * tokens ? whole : tokens;
  }
}
