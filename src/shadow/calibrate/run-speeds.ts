import type { StepDrift } from "#engine/step-drift.ts";
import type { Evidence } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import { pooledOf, ratioOf, runStarts, type StepWindows, stepWindowsOf } from "./step-windows.ts";
import { type FoundStalls, stallsOf } from "./stalls.ts";
import { meanOf } from "../figure/mean-of.ts";

/** Replays that look for the speeds, at most. */
const ROUNDS_MAX = 4;
/** Speeds that are nearer than this, as logarithms, are taken for the same. */
const NEAR = 0.003;
/** Near saturation times per token change by more than steps do, since batches grow with them; by no more than so. */
const ANSWER_MAX = 4;

/** How fast the machine was in each run of the evidence, and the replay at that speed. */
export interface RunSpeeds {
  /** Logarithms of how many times as long as the model's its steps were; 0 for a run that shows nothing of it. */
  readonly levels: readonly number[];
  /** So many times as far as its steps lie its times per token from those of the others; at least 1. */
  readonly answers: readonly number[];
  readonly outcome: ForcedOutcome;
  readonly stalls: FoundStalls;
  /** What is left of differences at these speeds; undefined where nothing was answered. */
  readonly windows: StepWindows | undefined;
}

/** Steps that take as much longer as they did in each run; undefined where all are as the model has them. */
export function speedDrift(evidence: Evidence, levels: readonly number[]): StepDrift | undefined {
  if (levels.every((level) => level === 0)) return undefined;
  const starts = runStarts(evidence);
  if (starts.length === 1) return { windowMicros: WINDOW_MICROS, factors: Float64Array.of(Math.exp(levels[0]!)) };
  const until = evidence.rows.reduce((most, row) => Math.max(most, row.arrivalAt + (row.e2eMicros || 0)), 0);
  const factors = new Float64Array(Math.ceil(until / WINDOW_MICROS) + 1);
  // Nothing is under way where a run begins: what came before it had ended.
  starts.forEach((at, r) => factors.fill(Math.exp(levels[r]!), Math.floor(at / WINDOW_MICROS)));
  return { windowMicros: WINDOW_MICROS, factors };
}

const WINDOW_MICROS = 1_000_000;

/**
 * The speed of each run, by replays at a speed that is corrected until its answers take as long as they took. Where there
 * are several, the middle of them is the model's: what all have in common stays in the windows, and with one run that is
 * all of it, unless `alone`, which is for a run that the model was not fitted to.
 */
export function runSpeeds(
  evidence: Evidence,
  replayed: (drift: StepDrift | undefined) => ForcedOutcome,
  start: readonly number[],
  alone = false,
): RunSpeeds {
  const count = runStarts(evidence).length;
  const isFixed = count === 1 && !alone;
  let levels = isFixed ? [0] : [...start];
  let answers = levels.map(() => 1);
  let before: { readonly levels: readonly number[]; readonly left: readonly number[] } | undefined;
  for (let round = 1; ; round++) {
    const outcome = replayed(speedDrift(evidence, levels));
    const stalls = stallsOf(evidence, outcome);
    const windows = stepWindowsOf(evidence, outcome, stalls.decodeMicros);
    const found = { levels, answers, outcome, stalls, windows };
    if (isFixed || windows === undefined || round === ROUNDS_MAX) return found;
    // A run that the model was not fitted to has stalls of its own: they count as slow steps.
    const seen = levelsLeft(evidence, outcome, alone ? new Float64Array(evidence.rows.length) : stalls.decodeMicros);
    const common = count === 1 ? 0 : meanOf(seen.filter(Number.isFinite));
    const left = seen.map((one) => (Number.isFinite(one) ? one - common : 0));
    const last = before;
    if (last !== undefined)
      answers = levels.map((level, r) => answerOf(last.left[r]! - left[r]!, level - last.levels[r]!, answers[r]!));
    if (left.every((one) => Math.abs(one) < NEAR)) return { ...found, answers };
    before = { levels, left };
    const moved = levels.map((level, r) => level + left[r]! / answers[r]!);
    const middle = count === 1 ? 0 : meanOf(moved);
    levels = moved.map((level) => Math.min(APART_MAX, Math.max(-APART_MAX, level - middle)));
  }
}

/** An engine file holds no more. */
const APART_MAX = 2;

/**
 * Mean observed over mean replayed time per token by run, as a logarithm; NaN where nothing was answered. `stalledMicros`:
 * what of each row's time after its first token its machine stood still.
 */
export function levelsLeft(evidence: Evidence, outcome: ForcedOutcome, stalledMicros: Float64Array): number[] {
  const starts = runStarts(evidence);
  const [seen, replayed] = [starts.map(() => 0), starts.map(() => 0)];
  let run = 0;
  evidence.rows.forEach((row, i) => {
    while (row.arrivalAt >= (starts[run + 1] ?? Infinity)) run++;
    const ratio = ratioOf(row, outcome.tpotMicros[i]!, stalledMicros[i]!);
    if (Number.isNaN(ratio)) return;
    seen[run]! += ratio * outcome.tpotMicros[i]!;
    replayed[run]! += outcome.tpotMicros[i]!;
  });
  return starts.map((_, r) => Math.log(seen[r]! / replayed[r]!));
}

/** Of each run, the windows in which anything was answered. */
export function windowsByRun(evidence: Evidence, windows: StepWindows): number[][] {
  const { windowMicros, count } = windows;
  const pooled = pooledOf(windows);
  const starts = runStarts(evidence);
  return starts.map((from, r) => {
    const [first, last] = [Math.ceil(from / windowMicros), Math.min(count, (starts[r + 1] ?? Infinity) / windowMicros)];
    const inside: number[] = [];
    for (let w = first; w < last; w++) if (!Number.isNaN(pooled[w]!)) inside.push(w);
    return inside;
  });
}

/** How much more the times per token moved than the steps. */
function answerOf(moved: number, by: number, otherwise: number): number {
  if (Math.abs(by) < NEAR) return otherwise;
  return Math.min(ANSWER_MAX, Math.max(1, moved / by));
}
