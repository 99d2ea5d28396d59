import { median } from "#core/base/quantile.ts";
import { LlmDPredictor } from "./llm-d-predictor.ts";
import { movingAverages } from "./moving-average.ts";
import { type FigureName, FIGURES, type Sample } from "./sample.ts";

/** How far a predictor was off. */
export interface Errors {
  /** Mean of |predicted - measured| / measured. */
  readonly mape: number;
  /** Median of the same. */
  readonly median: number;
  /** Sum of predicted over sum of measured, less 1. */
  readonly bias: number;
  readonly requests: number;
}

export interface Judged {
  readonly figure: FigureName;
  readonly predictor: string;
  readonly errors: Errors;
}

/** All predictors on what follows the first `fitShare` of the samples, which the boosted trees are fitted on. */
export function judge(samples: readonly Sample[], fitShare: number, seed: number): Judged[] {
  const from = Math.floor(samples.length * fitShare);
  // Fitted offline: on what became of those requests, even where that was known only after the others were sent.
  const model = new LlmDPredictor(samples.slice(0, from), seed);
  return FIGURES.flatMap((figure) => {
    const averages = movingAverages(samples, figure);
    const predicted: readonly (readonly [string, (sample: Sample, i: number) => number])[] = [
      ["gnomon", ({ forecast }) => forecast[figure]],
      ["moving average", (_, i) => averages[from + i]!],
      ["llm-d's features, boosted trees", ({ features }) => model.at(figure, features)],
    ];
    return predicted.map(([predictor, of]) => ({
      figure,
      predictor,
      errors: errorsOf(samples.slice(from), figure, of),
    }));
  });
}

function errorsOf(
  samples: readonly Sample[],
  figure: FigureName,
  predict: (sample: Sample, i: number) => number,
): Errors {
  const pairs = samples.flatMap((sample, i) => {
    const measured = sample.measured[figure];
    const predicted = predict(sample, i);
    return measured === undefined || measured <= 0 || Number.isNaN(predicted) ? [] : [[predicted, measured] as const];
  });
  const shares = pairs.map(([predicted, measured]) => Math.abs(predicted - measured) / measured);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return {
    mape: sum(shares) / shares.length,
    median: median(shares),
    bias: sum(pairs.map(([predicted]) => predicted)) / sum(pairs.map(([, measured]) => measured)) - 1,
    requests: pairs.length,
  };
}
