import { fitLinear } from "#engine/fit/linear-fit.ts";
import { type DecodeRow, decodeRows, prefilledTokens } from "./decode-rows.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import { type Parameters, parametersOf } from "./parameters.ts";
import { runStarts } from "./step-windows.ts";
import { quantile } from "#core/base/quantile.ts";

/** Where the search begins, and what each parameter must change by to change a typical time by one per cent. */
export interface StartingPoint {
  readonly start: Parameters;
  readonly percent: Parameters;
  /** Logarithms of how many times as long as in the middle of all runs steps were, a value per run. */
  readonly speeds: readonly number[];
}

/** Part of the median time per token below which tokens came together, rather than as they were made. */
const BURST_SHARE = 0.1;

/**
 * A first estimate without a simulation. What passed between a request's first and last token is linear in the
 * coefficients:
 *
 *   time = base * steps + perDecode * steps * concurrency + perPrefillToken * tokens + perPrefill * prompts
 *
 * with the prompts that came between; the time to the first token of the quickest requests less a step is the delay.
 */
export function startingPoint(evidence: Evidence, count: number): StartingPoint {
  const ok = evidence.rows.slice(0, count).filter((row) => row.ok);
  const tpot = quantile(
    ok.map(tpotOf).filter((value) => value > 0),
    0.5,
  );
  // An answer that came in one burst would weigh as all others together.
  const decodes = decodeRows(evidence, count).filter(({ micros, steps }) => micros >= BURST_SHARE * tpot * steps);
  const { coefficients, speeds } = decodeFit(decodes, runStarts(evidence));
  const ttft = quantile(
    ok.map(({ ttftMicros }) => ttftMicros),
    0.5,
  );
  const tokens = quantile(ok.map(prefilledTokens), 0.5);
  const typical = typicalStep(decodes);
  const percent = parametersOf((parameter) => {
    switch (parameter) {
      case "delayMicros":
      case "perPrefillMicros":
        return 0.01 * ttft;
      case "baseMicros":
        return 0.01 * tpot;
      case "perPrefillTokenMicros":
        return (0.01 * ttft) / tokens;
      case "perDecodeMicros":
        return (0.01 * tpot) / typical.concurrency;
      case "perDecodeContextTokenMicros":
        return (0.01 * tpot) / typical.contextTokens;
      case "perPrefillPairMicros":
        return (
          (0.01 * ttft) /
          (tokens *
            quantile(
              ok.map(({ promptTokens }) => promptTokens),
              0.5,
            ))
        );
    }
  });
  const [base = 0, decode = 0, token = 0] = coefficients;
  const quickest = quantile(
    ok.map((row) => row.ttftMicros - base - token * prefilledTokens(row)),
    0.2,
  );
  const fitted: Partial<Parameters> = {
    baseMicros: Math.max(base, 0.2 * tpot),
    perDecodeMicros: decode,
    perPrefillTokenMicros: token,
    delayMicros: quickest,
  };
  // A little of everything, so that the search sees which way each one leads.
  return { percent, speeds, start: parametersOf((parameter) => Math.max(fitted[parameter] ?? 0, percent[parameter])) };
}

/** Fits and speeds, in turn, until they agree. */
const SPEED_ROUNDS = 8;
/** A run of fewer answers shows nothing of its speed. */
const RUN_ANSWERS_MIN = 20;

/** One set of coefficients for all runs, and each run's speed beside them, the middle of which is 1. */
function decodeFit(decodes: readonly DecodeRow[], starts: readonly number[]) {
  const runs = decodes.map(({ firstAt }) => starts.findLastIndex((at) => at <= firstAt));
  const features = decodes.map((row) => [row.steps, row.steps * row.concurrency, row.prefillTokens, row.prefills]);
  let speeds = starts.map(() => 0);
  for (let round = 1; ; round++) {
    const targets = decodes.map(({ micros }, i) => micros * Math.exp(-speeds[runs[i]!]!));
    const { coefficients } = fitLinear(features, targets, "inverse-target");
    if (starts.length === 1 || round === SPEED_ROUNDS) return { coefficients, speeds };
    const left = targets.map((micros, i) => Math.log(micros / dot(coefficients, features[i]!)));
    const moved = speeds.map((speed, r) => {
      const own = left.filter((value, i) => runs[i] === r && Number.isFinite(value));
      return own.length < RUN_ANSWERS_MIN ? NaN : speed + quantile(own, 0.5);
    });
    const known = moved.filter(Number.isFinite);
    const middle = known.reduce((sum, speed) => sum + speed, 0) / known.length;
    speeds = moved.map((speed) => (Number.isFinite(speed) ? speed - middle : 0));
  }
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

function typicalStep(decodes: readonly DecodeRow[]): { readonly concurrency: number; readonly contextTokens: number } {
  return {
    concurrency: Math.max(
      1,
      quantile(
        decodes.map(({ concurrency }) => concurrency),
        0.5,
      ),
    ),
    contextTokens: Math.max(
      1,
      quantile(
        decodes.map(({ contextTokens }) => contextTokens),
        0.5,
      ),
    ),
  };
}
