import type { SeenStalls } from "#engine/step-drift.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import { quantile } from "#core/base/quantile.ts";
import { runStarts } from "./step-windows.ts";
import { meanOf } from "../figure/mean-of.ts";

/** Stalls that found their place, and what they took from each row's times. */
export interface FoundStalls {
  readonly seen: SeenStalls;
  /** Part of each row's time to its first token, and of the time after it, that its machine stood still; microseconds. */
  readonly firstMicros: Float64Array;
  readonly decodeMicros: Float64Array;
}

/** Stalls that are looked for at most, and lengths that are kept. */
const STALLS_MAX = 512;
const KEPT_MAX = 128;
/** Shorter ones are taken for slow steps. */
const STALL_MICROS_MIN = 60_000;
/** A time is long beyond so many standard deviations of its kind. */
const SIGMAS = 4;
/** First tokens that were predicted later than so waited in a queue, whose errors grow with it. */
const PROMPT_MICROS_MAX = 300_000;
/** Standard deviation over the median absolute deviation, of normal values. */
const MAD_SCALE = 1.4826;

/** A time that one request spent at its endpoint, and how much longer that was than predicted. */
interface Span {
  readonly row: number;
  readonly first: boolean;
  readonly endpoint: number;
  readonly from: number;
  readonly to: number;
  /** From here on it is beyond chance. */
  readonly threshold: number;
  excess: number;
}

/**
 * Times at which an endpoint's machine stood still: what several requests, each at its own place in its answer, were late
 * by at one moment. The greatest delay is taken first; it is a stall at the moment that most others as late have in common,
 * unless as many were on time through it, and what is left is searched again. One that a single request met may as well
 * be a socket's, and is none.
 */
export function stallsOf(evidence: Evidence, outcome: ForcedOutcome): FoundStalls {
  const { rows, endpoints } = evidence;
  const taken = { first: new Float64Array(rows.length), decode: new Float64Array(rows.length) };
  const spans = spansOf(evidence, outcome);
  const found: { readonly at: number; readonly micros: number; readonly endpoint: number }[] = [];
  const perEndpoint = endpoints.map((_, endpoint) => spans.filter((span) => span.endpoint === endpoint));
  for (const here of perEndpoint) {
    while (found.length < STALLS_MAX) {
      const late = latestOf(here);
      if (late === undefined) break;
      const stall = momentOf(late, here);
      if (stall === undefined) {
        late.excess = 0;
        continue;
      }
      found.push({ ...stall, endpoint: late.endpoint });
      for (const span of here) {
        if (span.from > stall.at || span.to < stall.at) continue;
        const part = Math.max(0, Math.min(span.excess, stall.micros));
        span.excess -= part;
        (span.first ? taken.first : taken.decode)[span.row]! += part;
      }
      // Rounding must not find the same one again.
      late.excess = Math.min(late.excess, late.threshold);
    }
  }
  const lengths = found.map(({ micros }) => Math.round(micros)).sort((a, b) => a - b);
  const kept = Math.min(KEPT_MAX, lengths.length);
  const together = found.filter((one) =>
    found.some((other) => other.endpoint !== one.endpoint && Math.abs(other.at - one.at) < one.micros + other.micros),
  );
  const runs = runStarts(evidence).map((from, r, all) => {
    const inside = (at: number) => at >= from && at < (all[r + 1] ?? Infinity);
    return {
      watchedMicros: perEndpoint.reduce((sum, here) => sum + busyMicros(here.filter((span) => inside(span.from))), 0),
      count: found.filter(({ at }) => inside(at)).length,
    };
  });
  const watchedMicros = Math.max(1, Math.round(runs.reduce((sum, run) => sum + run.watchedMicros, 0)));
  return {
    seen: {
      watchedMicros,
      count: usualCount(runs, watchedMicros),
      micros: Array.from({ length: kept }, (_, k) => lengths[Math.floor(((k + 0.5) * lengths.length) / kept)]!),
      shared: found.length === 0 ? 0 : Math.round((100 * together.length) / found.length) / 100,
    },
    firstMicros: taken.first,
    decodeMicros: taken.decode,
  };
}

/**
 * Stalls in so much time at the rate in the middle of the runs: the mean of the logarithms of rates, each with half a stall
 * more. A busy machine's hundred are not what the others meet.
 */
function usualCount(
  runs: readonly { readonly watchedMicros: number; readonly count: number }[],
  watchedMicros: number,
): number {
  const watched = runs.filter((run) => run.watchedMicros > 0);
  const all = watched.reduce((sum, { count }) => sum + count, 0);
  if (watched.length < 2) return all;
  const rate = Math.exp(meanOf(watched.map((run) => Math.log((run.count + 0.5) / run.watchedMicros))));
  return Math.min(all, Math.max(0, Math.round(rate * watchedMicros - 0.5 * watched.length)));
}

/** By their beginning. What is usual, and what is beyond chance, is so within a run. */
function spansOf(evidence: Evidence, outcome: ForcedOutcome): Span[] {
  const { rows } = evidence;
  const decodes = rows.map((row, i) => (row.ok ? Math.log(tpotOf(row) / outcome.tpotMicros[i]!) : NaN));
  const prompts = rows.map((row, i) => {
    const predicted = outcome.ttftMicros[i]!;
    return row.ok && predicted <= PROMPT_MICROS_MAX ? row.ttftMicros - predicted : NaN;
  });
  const starts = runStarts(evidence);
  const runOf = rows.map(({ arrivalAt }) => starts.findLastIndex((at) => at <= arrivalAt));
  const [decodeOf, promptOf] = [decodes, prompts].map((values) =>
    starts.map((_, r) => spreadOf(values.filter((_value, i) => runOf[i] === r))),
  );
  return rows
    .flatMap((row, i): Span[] => {
      const [decode, prompt] = [decodeOf![runOf[i]!]!, promptOf![runOf[i]!]!];
      const firstAt = row.arrivalAt + row.ttftMicros;
      const common = { row: i, endpoint: row.endpoint };
      const made: Span[] = [];
      if (Number.isFinite(prompts[i]!)) {
        const threshold = Math.max(STALL_MICROS_MIN, SIGMAS * prompt.sigma);
        const excess = prompts[i]! - prompt.centre;
        made.push({ ...common, first: true, from: row.arrivalAt, to: firstAt, threshold, excess });
      }
      if (Number.isFinite(decodes[i]!)) {
        const usual = outcome.tpotMicros[i]! * (row.outputTokens - 1) * Math.exp(decode.centre);
        const threshold = Math.max(STALL_MICROS_MIN, SIGMAS * decode.sigma * usual);
        const excess = row.e2eMicros - row.ttftMicros - usual;
        made.push({ ...common, first: false, from: firstAt, to: row.arrivalAt + row.e2eMicros, threshold, excess });
      }
      return made;
    })
    .sort((a, b) => a.from - b.from);
}

function spreadOf(values: readonly number[]): { readonly centre: number; readonly sigma: number } {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return { centre: 0, sigma: 0 };
  const centre = quantile(known, 0.5);
  return {
    centre,
    sigma:
      MAD_SCALE *
      quantile(
        known.map((value) => Math.abs(value - centre)),
        0.5,
      ),
  };
}

function latestOf(spans: readonly Span[]): Span | undefined {
  let latest: Span | undefined;
  for (const span of spans) {
    if (span.excess > span.threshold && span.excess > (latest?.excess ?? 0)) latest = span;
  }
  return latest;
}

/** When the stall was that made a span so late, and for how long; undefined where the others do not agree. */
function momentOf(late: Span, spans: readonly Span[]): { readonly at: number; readonly micros: number } | undefined {
  const around = spans.filter(({ from, to }) => from <= late.to && to >= late.from);
  const agrees = ({ excess }: Span) => excess >= late.excess / 2;
  let best: { readonly at: number; readonly votes: number } | undefined;
  // The number of requests at one moment changes where one begins.
  for (const { from } of around) {
    const at = Math.max(from, late.from);
    let votes = 0;
    for (const span of around) if (span.from <= at && span.to >= at) votes += agrees(span) ? 1 : -1;
    if (best === undefined || votes > best.votes) best = { at, votes };
  }
  if (best === undefined || best.votes < 0) return undefined;
  const { at } = best;
  const agreeing = around.filter((span) => span.from <= at && span.to >= at && agrees(span));
  if (new Set(agreeing.map(({ row }) => row)).size < 2) return undefined;
  return {
    at,
    micros: quantile(
      agreeing.map(({ excess }) => excess),
      0.5,
    ),
  };
}

/** Time in which at least one of them was there. They are in order of their beginning. */
function busyMicros(spans: readonly Span[]): number {
  let busy = 0;
  let until = -Infinity;
  for (const { from, to } of spans) {
    if (to <= until) continue;
    busy += to - Math.max(from, until);
    until = to;
  }
  return busy;
}
