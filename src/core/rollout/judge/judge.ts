import { assert } from "../../assert.ts";
import type { Micros } from "../../units.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import { ArmTally, type SavedTally } from "./arm-tally.ts";
import { addBlock, adjustedEstimate, type BlockSums, noBlocks, plainEstimate } from "./block-differences.ts";
import { ClusterMeans, type SavedClusters } from "./cluster-means.ts";
import { evidence, type MeanEstimate, priorFor, reach } from "./confidence-sequence.ts";
import { crossing, type Crossing, type Guardrail } from "./guardrail.ts";
import { type RolloutOutcome, TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";

/** Where the simulator expects an arm's figure to be, less the control's, in microseconds. */
export interface Prediction {
  readonly arm: number;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  readonly low: number;
  readonly high: number;
}

export interface JudgeOptions {
  readonly plan: RolloutPlan;
  /** Probability that an interval, at any look, leaves out a true difference; in (0, 1). */
  readonly level: number;
  /** Blocks or clusters at which the intervals are to be narrowest: those that the plan counts with. */
  readonly plannedCount: number;
  /** After the end of a window its answers may take as long; later ones count for the totals alone. */
  readonly settleMicros: Micros;
  /** An arm's window with fewer samples of a time has no figure of it. */
  readonly windowSamplesMin: number;
  readonly guardrails: readonly Guardrail[];
  readonly predictions: readonly Prediction[];
}

/** An arm's figure less the control's, microseconds, with an interval that holds at every look together. */
export interface Difference {
  readonly arm: number;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  /** What was counted as one: blocks of windows, or clusters. */
  readonly count: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Estimated standard deviation of one of them, after what the predictions explain. */
  readonly deviation: number;
  /** At 1 / level or above the interval leaves out 0. */
  readonly evidence: number;
  /** Variance of the difference less what the predictions explain, over the variance without; 1 where there are none. */
  readonly varianceLeft: number;
}

export interface Contradiction {
  readonly prediction: Prediction;
  readonly difference: Difference;
}

export interface Verdict {
  readonly differences: readonly Difference[];
  readonly crossings: readonly Crossing[];
  readonly contradictions: readonly Contradiction[];
}

export interface SavedJudge {
  readonly windows: readonly (readonly [number, Micros, readonly SavedTally[]])[];
  readonly totals: readonly SavedTally[];
  readonly latest: readonly (SavedTally | undefined)[];
  readonly blocks: readonly (readonly [number, readonly (SavedTally | undefined)[]])[];
  readonly sums: readonly (readonly [string, BlockSums])[];
  readonly clusters: readonly (readonly [TimeMetric, SavedClusters])[];
  readonly closedUntil: number;
  readonly lateOutcomes: number;
}

interface OpenWindow {
  readonly endAt: Micros;
  readonly arms: readonly ArmTally[];
}

/**
 * Compares the arms of one rollout while it runs. What counts as one is what was drawn as one: a block of windows in a
 * switchback, a window with pools (and for quantiles), a session, tenant or request in a split; never the request merely
 * because there are many. It decides nothing by itself: `proposedStep` makes steps of its verdicts.
 */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #arms: number;
  readonly #windows = new Map<number, OpenWindow>();
  readonly #totals: readonly ArmTally[];
  /** Of each arm the last closed window. */
  readonly #latest: (ArmTally | undefined)[];
  /** Windows of blocks that are not whole yet, by arm. */
  readonly #blocks = new Map<number, (ArmTally | undefined)[]>();
  readonly #sums: Map<string, BlockSums>;
  #clusters: ReadonlyMap<TimeMetric, ClusterMeans>;
  #closedUntil: number;
  /** Outcomes that came after their window was closed. */
  lateOutcomes: number;

  constructor(options: JudgeOptions, saved?: SavedJudge) {
    assert(options.level > 0 && options.level < 1, "a level is between 0 and 1");
    this.#options = options;
    const { arms } = options.plan;
    this.#arms = arms.length;
    this.#totals = arms.map((_, arm) => new ArmTally(saved?.totals[arm]));
    this.#latest = arms.map((_, arm) => restored(saved?.latest[arm]));
    for (const [window, endAt, tallies] of saved?.windows ?? []) {
      this.#windows.set(window, { endAt, arms: tallies.map((one) => new ArmTally(one)) });
    }
    for (const [block, tallies] of saved?.blocks ?? []) this.#blocks.set(block, tallies.map(restored));
    this.#sums = new Map(saved?.sums.map(([key, sums]) => [key, { ...sums }]));
    const clusters = new Map(saved?.clusters);
    this.#clusters = new Map(
      TIME_METRICS.map((metric) => [metric, new ClusterMeans(arms.length, clusters.get(metric))]),
    );
    this.#closedUntil = saved?.closedUntil ?? -1;
    this.lateOutcomes = saved?.lateOutcomes ?? 0;
  }

  /** What each arm did in all. */
  get totals(): readonly ArmTally[] {
    return this.#totals;
  }

  observe(outcome: RolloutOutcome): void {
    this.#totals[outcome.arm]!.add(outcome);
    if (outcome.window <= this.#closedUntil) {
      this.lateOutcomes++;
      return;
    }
    let open = this.#windows.get(outcome.window);
    if (open === undefined) {
      open = { endAt: outcome.windowEndAt, arms: this.#totals.map(() => new ArmTally()) };
      this.#windows.set(outcome.window, open);
    }
    open.arms[outcome.arm]!.add(outcome);
    if (!this.#bySession) return;
    for (const [metric, means] of this.#clusters) {
      const time = outcome.times[metric];
      if (time !== undefined) means.add(outcome.arm, outcome.cluster, time, outcome.predicted?.[metric] ?? 0);
    }
  }

  /** Closes the windows whose answers have had their time. */
  advance(at: Micros): void {
    const due = [...this.#windows].filter(([, { endAt }]) => endAt + this.#options.settleMicros <= at);
    for (const [window, open] of due.sort(([a], [b]) => a - b)) {
      this.#windows.delete(window);
      this.#closedUntil = Math.max(this.#closedUntil, window);
      this.#close(window, open.arms);
    }
  }

  /**
   * A canary's share has changed with that window: what was compared before is not who is compared now, so the
   * comparison begins anew. The level is shared among the steps.
   */
  startStage(fromWindow: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, fromWindow - 1);
    this.#windows.clear();
    this.#blocks.clear();
    this.#sums.clear();
    this.#clusters = new Map(TIME_METRICS.map((metric) => [metric, new ClusterMeans(this.#arms)]));
  }

  verdict(): Verdict {
    const differences = this.#treatments.flatMap((arm) =>
      TIME_METRICS.flatMap((metric) => TIME_FIGURES.map((figure) => this.difference(arm, metric, figure))),
    );
    const contradictions = this.#options.predictions.flatMap((prediction) => {
      const { arm, metric, figure, low, high } = prediction;
      const difference = this.difference(arm, metric, figure);
      return difference.low > high || difference.high < low ? [{ prediction, difference }] : [];
    });
    return { differences, crossings: this.crossings(), contradictions };
  }

  /** Limits that an arm is beyond, in its latest window that has samples enough. */
  crossings(): Crossing[] {
    const latest = this.#recent();
    return this.#treatments.flatMap((arm) =>
      this.#options.guardrails.flatMap((guardrail) => {
        const tally = latest[arm];
        const crossed = tally === undefined ? undefined : crossing(guardrail, arm, tally, latest[0]);
        return crossed === undefined ? [] : [crossed];
      }),
    );
  }

  difference(arm: number, metric: TimeMetric, figure: TimeFigure): Difference {
    const { plan, plannedCount } = this.#options;
    const stages = plan.design.kind === "canary" ? plan.design.stepPercents.length : 1;
    const level = this.#options.level / stages;
    const [plain, adjusted] = this.#estimates(arm, metric, figure);
    const prior = priorFor(plannedCount, level);
    const half = reach(adjusted, level, prior);
    const variance = plain.deviation ** 2;
    return {
      arm,
      metric,
      figure,
      count: adjusted.count,
      mean: adjusted.mean,
      low: Number.isFinite(half) ? adjusted.mean - half : -Infinity,
      high: Number.isFinite(half) ? adjusted.mean + half : Infinity,
      deviation: adjusted.deviation,
      evidence: evidence(adjusted, prior),
      varianceLeft: variance > 0 ? adjusted.deviation ** 2 / variance : 1,
    };
  }

  saved(): SavedJudge {
    return {
      windows: [...this.#windows].map(([window, { endAt, arms }]) => [window, endAt, arms.map((arm) => arm.saved())]),
      totals: this.#totals.map((tally) => tally.saved()),
      latest: this.#latest.map((tally) => tally?.saved()),
      blocks: [...this.#blocks].map(([block, arms]) => [block, arms.map((tally) => tally?.saved())]),
      sums: [...this.#sums].map(([key, sums]) => [key, { ...sums }]),
      clusters: [...this.#clusters].map(([metric, means]) => [metric, means.saved()]),
      closedUntil: this.#closedUntil,
      lateOutcomes: this.lateOutcomes,
    };
  }

  get #treatments(): number[] {
    return Array.from({ length: this.#arms - 1 }, (_, i) => i + 1);
  }

  get #bySession(): boolean {
    const { kind } = this.#options.plan.design;
    return kind === "split" || kind === "canary";
  }

  #estimates(arm: number, metric: TimeMetric, figure: TimeFigure): readonly [MeanEstimate, MeanEstimate] {
    if (this.#bySession && figure === "mean") {
      const means = this.#clusters.get(metric)!;
      return [means.estimate(arm, false), means.estimate(arm, true)];
    }
    const sums = this.#sums.get(keyOf(arm, metric, figure)) ?? noBlocks();
    return [plainEstimate(sums), adjustedEstimate(sums)];
  }

  /** Each arm's latest window: the one that is still open where it has more to say than the last closed one. */
  #recent(): (ArmTally | undefined)[] {
    const { guardrails } = this.#options;
    const samplesMin = Math.max(0, ...guardrails.map((guardrail) => guardrail.samplesMin));
    const open = [...this.#windows].sort(([a], [b]) => b - a).map(([, { arms }]) => arms);
    return this.#latest.map((closed, arm) => {
      const full = open.find((arms) => arms[arm]!.counts.requests >= samplesMin && arms[arm]!.counts.requests > 0);
      return full?.[arm] ?? closed ?? open.find((arms) => arms[arm]!.counts.requests > 0)?.[arm];
    });
  }

  #close(window: number, arms: readonly ArmTally[]): void {
    const { kind } = this.#options.plan.design;
    const block = kind === "switchback" ? Math.floor(window / this.#arms) : window;
    for (const known of this.#blocks.keys()) if (known < block - 1) this.#blocks.delete(known);
    const whole = this.#blocks.get(block) ?? arms.map(() => undefined);
    this.#blocks.set(block, whole);
    arms.forEach((tally, arm) => {
      if (tally.counts.requests === 0) return;
      whole[arm] = tally;
      this.#latest[arm] = tally;
    });
    if (whole.includes(undefined)) return;
    this.#blocks.delete(block);
    this.#compare(whole as ArmTally[]);
  }

  #compare(arms: readonly ArmTally[]): void {
    const control = arms[0]!;
    for (const arm of this.#treatments) {
      const tally = arms[arm]!;
      for (const metric of TIME_METRICS) {
        if (Math.min(tally.samples(metric), control.samples(metric)) < this.#options.windowSamplesMin) continue;
        const covariate = (tally.predicted(metric) ?? NaN) - (control.predicted(metric) ?? NaN);
        for (const figure of TIME_FIGURES) {
          const key = keyOf(arm, metric, figure);
          const sums = this.#sums.get(key) ?? noBlocks();
          this.#sums.set(key, sums);
          const difference = tally.time(metric, figure) - control.time(metric, figure);
          addBlock(sums, difference, Number.isNaN(covariate) ? 0 : covariate);
        }
      }
    }
  }
}

function keyOf(arm: number, metric: TimeMetric, figure: TimeFigure): string {
  return `${arm} ${metric} ${figure}`;
}

function restored(saved: SavedTally | undefined | null): ArmTally | undefined {
  return saved === undefined || saved === null ? undefined : new ArmTally(saved);
}
