import { randomFor } from "#core/base/random.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { BoostedTrees, type BoostingOptions } from "./boosted-trees.ts";
import { type Features, FIGURES, type FigureName, type Sample } from "./sample.ts";

/**
 * Those of llm-d's latency predictor (August 2026), with its objective MEAN: its default of the 90th percentile is
 * meant to be too high.
 */
const OPTIONS: BoostingOptions = {
  trees: 200,
  depth: 6,
  rate: 0.05,
  rows: 0.8,
  columns: 0.8,
  leafRowsMin: 5,
  gainMin: 0.2,
  l1: 0.01,
  l2: 0.1,
};
const PREFIX_BUCKETS = 4;

/** Gradient boosting on the features of llm-d's latency predictor, in milliseconds, as it fits them. */
export class LlmDPredictor {
  readonly #models: Readonly<Record<FigureName, BoostedTrees>>;

  constructor(fitted: readonly Sample[], seed: number) {
    const models = FIGURES.map((figure, i) => {
      const known = fitted.filter(({ measured }) => (measured[figure] ?? 0) > 0);
      const rows = known.map(({ features }) => ROWS[figure](features));
      const targets = known.map(({ measured }) => measured[figure]! / MICROS_PER_MILLI);
      return [figure, new BoostedTrees(rows, targets, OPTIONS, randomFor(seed, i))] as const;
    });
    this.#models = Object.fromEntries(models) as Record<FigureName, BoostedTrees>;
  }

  /** Microseconds; it never predicts below 0, as llm-d's server does not. */
  at(figure: FigureName, features: Features): number {
    return Math.max(0, this.#models[figure].at(ROWS[figure](features))) * MICROS_PER_MILLI;
  }
}

const ROWS: Readonly<Record<FigureName, (features: Features) => readonly number[]>> = {
  ttft: (features) => [
    ...common(features),
    features.prefixScore,
    (1 - features.prefixScore) * features.inputTokens,
    Math.min(PREFIX_BUCKETS - 1, Math.floor(features.prefixScore * PREFIX_BUCKETS)),
  ],
  tpot: common,
};

function common({ kvUtilization, inputTokens, waiting, running, ...tokens }: Features): readonly number[] {
  const { prefillTokensInFlight, decodeTokensInFlight } = tokens;
  const queued = waiting > 0 ? 1 : 0;
  return [queued, kvUtilization, inputTokens, waiting, running, prefillTokensInFlight, decodeTokensInFlight];
}
