import type { FirstTokenResiduals } from "#engine/step-drift.ts";
import type { Evidence } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import type { Parameters } from "./parameters.ts";
import { quantile } from "#core/base/quantile.ts";
import { runStarts } from "./step-windows.ts";
import { meanOf } from "../figure/mean-of.ts";

/** Kept at most, evenly by rank. */
const KEPT_MAX = 512;
/** Fewer show nothing of a tail. */
const REQUESTS_MIN = 40;
/** Part of the requests, those of the nearest predicted times, whose median is no chance but the model's error. */
const LOCAL_PART = 0.25;

/**
 * How much later than replayed single requests had their first token, by how long the replay has it take: pauses of an
 * engine and of the way to it, which neither the means of many steps nor a robust fit hold. The median of requests of
 * about the same time is taken off, so that half of them come earlier; few and long pauses still move the mean. Of several
 * runs each has its own medians, and is brought to where the middle of the runs lies (the mean of the logarithms): in a
 * mixture most of what is late is one run's, and would be the tail of all others. Undefined
 * where there are too few requests. `stalledMicros`: what of each row's time its machine stood still, which is
 * modelled elsewhere.
 */
export function firstTokenResidualsOf(
  evidence: Evidence,
  outcome: ForcedOutcome,
  stalledMicros: Float64Array,
): FirstTokenResiduals | undefined {
  const starts = runStarts(evidence);
  const runs = starts.map((): Late[] => []);
  let run = 0;
  evidence.rows.forEach(({ ok, arrivalAt, ttftMicros }, i) => {
    while (arrivalAt >= (starts[run + 1] ?? Infinity)) run++;
    const predicted = outcome.ttftMicros[i]!;
    if (ok && predicted > 0) runs[run]!.push({ predicted, later: ttftMicros - stalledMicros[i]! - predicted });
  });
  if (runs.reduce((sum, one) => sum + one.length, 0) < REQUESTS_MIN) return undefined;
  const apart = runs.map((one) => fromMedians(thinned(one)));
  const sizes = apart.map((one) => (one.length < RUN_REQUESTS_MIN ? NaN : meanOf(one.map(sizeOf))));
  const middle = Math.exp(meanOf(sizes.filter((size) => size > 0).map(Math.log)));
  const all = apart.flatMap((one, r) => {
    const scale = sizes[r]! > 0 && runs.length > 1 ? middle / sizes[r]! : 1;
    return one.map(({ predicted, later }) => ({ predicted, later: scale * later }));
  });
  const kept = thinned(all);
  return {
    predictedMicros: kept.map(({ predicted }) => Math.round(predicted)),
    laterMicros: kept.map(({ later }) => Math.round(later)),
  };
}

interface Late {
  readonly predicted: number;
  readonly later: number;
}

const sizeOf = ({ later }: Late) => Math.abs(later);

/** In order of when they were predicted, KEPT_MAX at most. */
function thinned(seen: readonly Late[]): readonly Late[] {
  const sorted = seen.toSorted((a, b) => a.predicted - b.predicted);
  const count = Math.min(KEPT_MAX, sorted.length);
  return Array.from({ length: count }, (_, k) => sorted[Math.floor(((k + 0.5) * sorted.length) / count)]!);
}

/** Without what requests of about the same predicted time have in common. */
function fromMedians(kept: readonly Late[]): readonly Late[] {
  const half = Math.ceil((LOCAL_PART * kept.length) / 2);
  return kept.map(({ predicted, later }, k) => {
    const around = kept.slice(Math.max(0, k - half), k + half + 1).map((one) => one.later);
    return { predicted, later: later - quantile(around, 0.5) };
  });
}

/** Requests of a run without which its first tokens show nothing of it. */
const RUN_REQUESTS_MIN = 20;

/** How much later than replayed first tokens came, in order of when they were predicted, of the quarter predicted soonest. */
function soonest(
  rows: Evidence["rows"],
  outcome: ForcedOutcome,
  chosen: (row: Evidence["rows"][number]) => boolean,
): number[] {
  const seen = rows.flatMap((row, i) => {
    const predicted = outcome.ttftMicros[i]!;
    return row.ok && chosen(row) && predicted > 0 ? [{ predicted, later: row.ttftMicros - predicted }] : [];
  });
  seen.sort((a, b) => a.predicted - b.predicted);
  return seen.slice(0, Math.max(RUN_REQUESTS_MIN, Math.ceil(seen.length / 4))).map((one) => one.later);
}

/**
 * How much later than replayed the first tokens of requests came that met no queue (`aloneMicros` is what a prompt of so many
 * uncached tokens takes then), and how much more of that each token brings, by the difference between the halves with
 * shorter and longer prompts. Of the former what tokens do not explain; NaN where there are too few, and no latter where
 * prompts are too few or of about one length.
 */
export function firstTokensOff(
  { rows }: Evidence,
  outcome: ForcedOutcome,
  aloneMicros: (tokens: number) => number,
): { readonly later: number; readonly perToken: number | undefined } {
  const alone = rows.flatMap(({ ok, promptTokens, ttftMicros }, i) => {
    const predicted = outcome.ttftMicros[i]!;
    const tokens = promptTokens - outcome.cachedTokens[i]!;
    const met = predicted > 0 && predicted < ALONE_MOST * aloneMicros(tokens);
    return ok && met ? [{ tokens, later: ttftMicros - predicted }] : [];
  });
  if (alone.length < RUN_REQUESTS_MIN) return { later: NaN, perToken: undefined };
  alone.sort((a, b) => a.tokens - b.tokens);
  const middle = alone.length >> 1;
  const laterOf = (some: readonly Half[]) =>
    quantile(
      some.map(({ later }) => later),
      0.5,
    );
  const [short, long] = [alone.slice(0, middle), alone.slice(middle)].map((half) => ({
    tokens: meanOf(half.map(({ tokens }) => tokens)),
    later: laterOf(half),
  })) as [Half, Half];
  const apart = long.tokens - short.tokens;
  if (alone.length < 2 * RUN_REQUESTS_MIN || !(apart > APART_MIN))
    return { later: laterOf(alone), perToken: undefined };
  const perToken = (long.later - short.later) / apart;
  return { later: short.later - perToken * short.tokens, perToken };
}

/** A step of others may stand before a request that meets no queue. */
const ALONE_MOST = 2;

interface Half {
  readonly tokens: number;
  readonly later: number;
}

/** Prompts that differ by less show no rate. */
const APART_MIN = 64;

/**
 * How far one run's delay and how late its single first tokens came are from all runs', as logarithms; NaN where it does
 * not show. Both from the quarter of its requests that were predicted soonest: of those no queue is a part.
 */
export function firstTokenDeviation(
  { rows }: Evidence,
  outcome: ForcedOutcome,
  { delayMicros }: Parameters,
  from: number,
  until: number,
): { readonly delay: number; readonly prefill: number; readonly noise: number; readonly noiseError: number } {
  const later = (own: boolean) =>
    soonest(rows, outcome, ({ arrivalAt }) => !own || (arrivalAt >= from && arrivalAt < until));
  const [own, all] = [later(true), later(false)];
  if (own.length < RUN_REQUESTS_MIN) return { delay: NaN, prefill: NaN, noise: NaN, noiseError: NaN };
  const delay = delayMicros + quantile(own, 0.5);
  const half = (odd: number) => own.filter((_, i) => i % 2 === odd);
  return {
    delay: delayMicros > 0 && delay > 0 ? Math.log(delay / delayMicros) : NaN,
    prefill: NaN,
    noise: Math.log(spreadOf(own) / spreadOf(all)),
    // Of two halves, each of which has twice the variance of the whole.
    noiseError: Math.abs(Math.log(spreadOf(half(0)) / spreadOf(half(1)))) / 2,
  };
}

/** From the median to the 90th percentile. */
function spreadOf(values: readonly number[]): number {
  return quantile(values, 0.9) - quantile(values, 0.5);
}
