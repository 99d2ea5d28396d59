import { assert } from "../../base/assert.ts";
import { MICROS_PER_SECOND, type Micros } from "../../base/units.ts";
import type { Design, RolloutPlan } from "../plan/rollout-plan.ts";
import { armFigures, type WindowFigures } from "./arm-figures.ts";
import { ArmTally, type SavedTally } from "./arm-tally.ts";
import { ArrivalOrder, type SavedOrder } from "./arrival-order.ts";
import { AwaitedOutcomes, type SavedAwaited } from "./awaited-outcomes.ts";
import {
  addBlock,
  adjustedEstimate,
  type BlockKind,
  type BlockSums,
  noBlocks,
  plainEstimate,
} from "./block-differences.ts";
import {
  type CanaryFigure,
  canaryReading,
  type CanaryReading,
  ERRORS_MARGIN,
  MARGIN_DEFAULT,
  SLOW_MARGIN,
  STEP_SAMPLES_DEFAULT,
  type SurelyWorse,
} from "./canary-reading.ts";
import { type ClusteredShare, ClusterGroups, type SavedGroups } from "./cluster-groups.ts";
import { ClusterMeans, type SavedClusters } from "./cluster-means.ts";
import { type MeanEstimate, priorFor } from "./confidence-sequence.ts";
import { arrivalsAilment, type Ailment, carryOver, deadArm, sampleRatio, sparseWindows } from "./health.ts";
import { sliceAt, sliceMicros, sliceOf } from "./slice-counts.ts";
import { differenceOf, quantileDifferenceOf } from "./difference-of.ts";
import { PRIMARY_DEFAULT } from "./figure-key.ts";
import { figureLevel, GUARDRAILS_SHARE } from "./figure-level.ts";
import { Guard, type SavedGuard } from "./guard.ts";
import { type GuardrailReading, type OpenRequest, RATES } from "./guardrail.ts";
import type { JudgeRules } from "./judge-rules.ts";
import { type Quantile, quantileDifference, type QuantileDifference } from "./quantile-difference.ts";
import { type Membership, MemberTallies, type SavedMembers } from "./member-tallies.ts";
import { RankedRequests, type Unranked } from "./ranked-requests.ts";
import { RelativeLimits } from "./relative-limits.ts";
import { type RolloutOutcome, TIME_FIGURES, TIME_METRICS, type TimeFigure, type TimeMetric } from "./outcome.ts";
import { shareAtLeast } from "./share-bound.ts";
import type { Difference, Verdict } from "./verdict.ts";

export interface JudgeOptions extends JudgeRules {
  readonly plan: RolloutPlan;
}

export interface SavedJudge {
  readonly windows: readonly (readonly [number, Micros, number, readonly SavedTally[]])[];
  readonly totals: readonly SavedTally[];
  readonly guard: SavedGuard;
  readonly blocks: readonly (readonly [number, readonly (SavedTally | null)[]])[];
  readonly sums: readonly (readonly [string, BlockSums])[];
  readonly clusters: readonly (readonly [TimeMetric, SavedClusters])[];
  /** Tenants and classes, where limits are judged by them: all, and by window and block. */
  readonly members?: SavedMembers;
  readonly windowMembers?: readonly (readonly [number, SavedMembers])[];
  readonly blockMembers?: readonly (readonly [number, SavedMembers])[];
  /** Absent where windows are compared. */
  readonly groups?: SavedGroups;
  /** Of what ended in the order in which it came; absent where windows are compared, and in what earlier versions saved. */
  readonly inOrder?: SavedGroups;
  readonly order?: SavedOrder;
  /** Requests that wait to be ranked. */
  readonly unranked?: readonly Unranked[];
  /** Absent in what earlier versions saved. */
  readonly arrivals?: readonly BlockSums[];
  readonly trends?: readonly BlockSums[];
  readonly history: readonly WindowFigures[];
  readonly closedUntil: number;
  readonly stageFrom: number;
  readonly lateOutcomes: number;
  /** Absent where nothing waited for predictions. */
  readonly awaited?: SavedAwaited;
}

interface OpenWindow {
  readonly endAt: Micros;
  /** Counted requests that have not ended. */
  open: number;
  readonly arms: readonly ArmTally[];
  readonly members: MemberTallies;
}

/** Blocks of a switchback after which some must have been compared, and the share of them that must. */
const SPARSE_BLOCKS = 4;
const COMPARED_SHARE = 1 / 4;
/** Closed windows whose figures are kept. */
const HISTORY_MAX = 256;

/**
 * Compares the arms of one rollout while it runs. What counts as one is what was drawn as one: a block of windows in a
 * switchback, a window of pools whose keys are drawn anew in each, a session, tenant or request in a split; never the
 * request merely because there are many. What is drawn by session, tenant or request is compared in the order in which it
 * came (`ArrivalOrder`), limits see it as it ends. Pools that keep their keys are two values, which show nothing: their windows have
 * figures, and no interval. Means are over requests: a window or a session counts as much as it has of them. It decides
 * nothing by itself: `proposedStep` makes steps of its verdicts.
 */
export class Judge {
  #options: JudgeOptions;
  readonly #arms: number;
  readonly #guard: Guard;
  readonly #memberships: ReadonlySet<Membership>;
  /** Of all that is compared. */
  #members: MemberTallies;
  readonly #windows = new Map<number, OpenWindow>();
  readonly #totals: readonly ArmTally[];
  /** Windows of blocks that are not whole yet, by arm. */
  readonly #blocks = new Map<number, (ArmTally | undefined)[]>();
  readonly #blockMembers = new Map<number, MemberTallies>();
  readonly #sums: Map<string, BlockSums>;
  /** How they were made. */
  readonly #kindOfBlocks: BlockKind;
  /** Of blocks, by arm (and time): requests less the control's, and the later half of windows less the earlier. */
  readonly #arrivals: BlockSums[];
  #trends: BlockSums[];
  readonly #history: WindowFigures[];
  readonly #awaited: AwaitedOutcomes;
  #clusters: ReadonlyMap<TimeMetric, ClusterMeans>;
  /** As requests end, for limits, which see those that have not; and in the order in which they came, for the comparison. */
  #groups: ClusterGroups;
  #inOrder: ClusterGroups;
  #order: ArrivalOrder;
  #ranking: RankedRequests;
  #closedUntil: number;
  /** Outcomes of windows before it were compared with others than those that are compared now. */
  #stageFrom: number;
  /** Outcomes that came after their window was closed. */
  lateOutcomes: number;

  constructor(options: JudgeOptions, saved?: SavedJudge) {
    assert(options.level > 0 && options.level < 1, "a level is between 0 and 1");
    this.#options = options;
    const { arms } = options.plan;
    this.#arms = arms.length;
    const { design } = options.plan;
    const pools = design.kind !== "pools" ? undefined : design.redrawn === true ? "redrawn" : "kept";
    this.#kindOfBlocks = { carriesOver: pools === "redrawn" };
    const level = options.level * GUARDRAILS_SHARE;
    this.#guard = new Guard(arms.length, options.guardrails, { level, pools }, saved?.guard);
    this.#memberships = RelativeLimits.membershipsOf(options.guardrails);
    this.#members = this.#noMembers(saved?.members);
    this.#totals = arms.map((_, arm) => new ArmTally(saved?.totals[arm]));
    for (const [window, endAt, open, tallies] of saved?.windows ?? []) {
      const members = this.#noMembers(saved?.windowMembers?.find(([number]) => number === window)?.[1]);
      this.#windows.set(window, { endAt, open, arms: tallies.map((one) => new ArmTally(one)), members });
    }
    for (const [block, tallies] of saved?.blocks ?? []) this.#blocks.set(block, tallies.map(restored));
    for (const [block, members] of saved?.blockMembers ?? []) this.#blockMembers.set(block, this.#noMembers(members));
    this.#sums = new Map(saved?.sums.map(([key, sums]) => [key, { ...sums }]));
    this.#arrivals = arms.map((_, arm) => ({ ...(saved?.arrivals?.[arm] ?? noBlocks()) }));
    this.#trends = arms.flatMap((_, arm) =>
      TIME_METRICS.map((_metric, i) => ({ ...(saved?.trends?.[arm * TIME_METRICS.length + i] ?? noBlocks()) })),
    );
    this.#history = [...(saved?.history ?? [])];
    const clusters = new Map(saved?.clusters);
    this.#clusters = new Map(
      TIME_METRICS.map((metric) => [metric, new ClusterMeans(arms.length, clusters.get(metric))]),
    );
    this.#groups = new ClusterGroups(arms.length, saved?.groups);
    this.#inOrder = new ClusterGroups(arms.length, saved?.inOrder ?? saved?.groups);
    this.#order = new ArrivalOrder(saved?.order);
    this.#ranking = new RankedRequests(saved?.unranked);
    this.#closedUntil = saved?.closedUntil ?? -1;
    this.#stageFrom = saved?.stageFrom ?? 0;
    this.lateOutcomes = saved?.lateOutcomes ?? 0;
    this.#awaited = new AwaitedOutcomes(saved?.awaited);
  }

  /** What waits for its prediction, and what has had it or not. */
  get awaited(): AwaitedOutcomes {
    return this.#awaited;
  }

  /** Requests that were compared before earlier ones had ended, for want of room. */
  get outOfOrder(): number {
    return this.#order.early;
  }

  /** What each arm did in all. */
  get totals(): readonly ArmTally[] {
    return this.#totals;
  }

  /** The same of what is compared so far, by session or request in the order in which they came. */
  get compared(): readonly ArmTally[] {
    return this.#bySession ? this.#totals.map((_, arm) => this.#inOrder.total(arm)) : this.#totals;
  }

  /** The last windows that were closed, oldest first. */
  get history(): readonly WindowFigures[] {
    return this.#history;
  }

  /** A request that counts has come: its window stays open for it, and what came after it waits for it (`sliceAt`). */
  arrived(window: number, windowEndAt: Micros, sliceAt?: Micros): void {
    if (window > this.#closedUntil) this.#windowOf(window, windowEndAt).open++;
    if (sliceAt !== undefined && this.#bySession && window >= this.#stageFrom) this.#order.arrived(sliceAt);
  }

  /** One that had arrived counts no longer: nothing waits for it. */
  withdrawn(window: number, sliceAt?: Micros): void {
    const open = this.#windows.get(window);
    if (open !== undefined) open.open--;
    if (sliceAt !== undefined && window >= this.#stageFrom) this.#order.withdrawn(sliceAt);
  }

  /** A request has ended; one that counts had arrived. With an id it is compared once its prediction is there. */
  observe(outcome: RolloutOutcome, awaited?: { readonly id: string; readonly endAt: Micros }): void {
    this.#guard.observe(outcome);
    if (!outcome.counted) return;
    this.#totals[outcome.arm]!.add(outcome);
    if (outcome.window >= this.#stageFrom) {
      this.#members.add(outcome);
      if (this.#bySession) {
        this.#groups.add(outcome);
        for (const [one, isSlow] of this.#ranking.add(outcome)) {
          this.#groups.addRanked(one, isSlow);
          this.#members.addRanked(one, isSlow);
        }
      }
    }
    if (awaited === undefined) return this.#compared(outcome, false);
    if (this.#isOrdered(outcome)) this.#order.awaits(this.#sliceAt(outcome));
    const known = this.#awaited.add({ ...awaited, outcome });
    if (known !== undefined) this.#compared(known, true);
  }

  /** What the simulator predicts of a request that has ended; nothing where it does not wait for it. */
  predicted(id: string, times: Required<RolloutOutcome>["predicted"]): void {
    const outcome = this.#awaited.take(id, times);
    if (outcome !== undefined) this.#compared(outcome, true);
  }

  #compared(outcome: RolloutOutcome, wasAwaited: boolean): void {
    const window = this.#windows.get(outcome.window);
    if (window === undefined) this.lateOutcomes++;
    else {
      window.open--;
      window.arms[outcome.arm]!.add(outcome);
      window.arms[outcome.arm]!.addInWindow(outcome, this.#isLater(outcome));
      window.members.add(outcome);
    }
    if (!this.#isOrdered(outcome)) return;
    for (const one of this.#order.ended(this.#sliceAt(outcome), outcome, wasAwaited)) this.#addInOrder(one);
  }

  #isOrdered({ window }: RolloutOutcome): boolean {
    return this.#bySession && window >= this.#stageFrom;
  }

  #sliceAt({ stretch, slice }: RolloutOutcome): Micros {
    return sliceAt(stretch, this.#options.plan.design.windowMicros, slice);
  }

  #addInOrder(outcome: RolloutOutcome): void {
    this.#inOrder.add(outcome);
    for (const [metric, means] of this.#clusters) {
      const time = outcome.times[metric];
      if (time !== undefined) means.add(outcome.arm, outcome.cluster, time, outcome.predicted?.[metric]);
    }
  }

  /** Closes the windows whose answers and predictions are all there, or have had their time, in order. */
  advance(at: Micros): void {
    const { settleMicros } = this.#options;
    const settled = [...this.#windows].map(([window, { endAt }]) => (at >= endAt + settleMicros ? window : -1));
    for (const one of this.#awaited.release(Math.max(-1, ...settled))) this.#compared(one, true);
    // What began until then is over, and its window has settled.
    const { windowMicros } = this.#options.plan.design;
    const over = at - sliceMicros(windowMicros);
    const limit = at - settleMicros - windowMicros;
    for (const one of this.#order.release(over, limit)) this.#addInOrder(one);
    for (const [window, { endAt, open, arms, members }] of [...this.#windows].sort(([a], [b]) => a - b)) {
      if (at < (open > 0 ? endAt + settleMicros : endAt)) return;
      this.#windows.delete(window);
      this.#closedUntil = window;
      this.#close(window, endAt, arms, members);
    }
  }

  /**
   * A canary's share has changed with that window: what was compared before is not who is compared now, so the
   * comparison begins anew. The level is shared among the steps. With a design, windows are longer from then on: what was
   * compared in shorter ones was not the arms alone. Arms that are alike leave nothing behind, so that they get there as
   * rarely as health is wrong, and the level is not shared.
   */
  startStage(fromWindow: number, design?: Design): void {
    // Each replica that took the step brings it.
    if (fromWindow <= this.#stageFrom) return;
    if (design !== undefined) {
      this.#options = { ...this.#options, plan: { ...this.#options.plan, design } };
      this.#trends = this.#trends.map(noBlocks);
    }
    this.#closedUntil = Math.max(this.#closedUntil, fromWindow - 1);
    this.#stageFrom = fromWindow;
    this.#windows.clear();
    this.#blocks.clear();
    this.#blockMembers.clear();
    this.#members = this.#noMembers();
    this.#sums.clear();
    this.#clusters = new Map(TIME_METRICS.map((metric) => [metric, new ClusterMeans(this.#arms)]));
    this.#groups = new ClusterGroups(this.#arms);
    this.#inOrder = new ClusterGroups(this.#arms);
    this.#order = new ArrivalOrder();
    this.#ranking = new RankedRequests();
  }

  /** With the requests that have not ended, for the guardrails; of a canary its present share, in percent. */
  verdict(open: readonly OpenRequest[] = [], canaryPercent?: number): Verdict {
    const differences = this.#differences();
    const contradictions = this.#options.predictions.flatMap((prediction) => {
      const { arm, metric, figure, low, high } = prediction;
      const difference = this.difference(arm, metric, figure);
      return difference.low > high || difference.high < low ? [{ prediction, difference }] : [];
    });
    return {
      differences,
      crossings: this.readings(open).filter(({ crossed }) => crossed),
      contradictions,
      ailments: this.ailments(canaryPercent),
    };
  }

  #differences(): Difference[] {
    return this.#treatments.flatMap((arm) =>
      TIME_METRICS.flatMap((metric) => TIME_FIGURES.map((figure) => this.difference(arm, metric, figure))),
    );
  }

  /** What makes the comparison worthless, by what it is made of; of a canary with its present share, in percent. */
  ailments(canaryPercent?: number): Ailment[] {
    const { design } = this.#options.plan;
    if (design.kind === "shadow") return [];
    const found: (Ailment | undefined)[] = [];
    // A switchback's arms take turns; as many windows as there are arms, twice, have each at least once.
    const windows = design.kind === "switchback" ? 2 * this.#arms : 1;
    const recent = this.#history.slice(-windows).filter(({ window }) => window >= this.#stageFrom);
    // Of a canary's few an arm may have none in a window: all of its step are asked.
    const isCanary = design.kind === "canary";
    if (recent.length === windows && !isCanary) found.push(deadArm(recent.map(({ arms }) => arms)));
    const isRedrawn = design.kind === "pools" && design.redrawn === true;
    for (const arm of design.kind === "switchback" || isRedrawn ? this.#treatments : [])
      found.push(arrivalsAilment(arm, plainEstimate(this.#arrivals[arm] ?? noBlocks(), this.#kindOfBlocks)));
    if (design.kind === "switchback") {
      const early = this.#history.filter(({ window }) => window >= this.#stageFrom);
      for (const arm of this.#treatments) {
        if (this.#isBare(arm, early.length / this.#arms)) {
          const windows = early.map(({ arms }) => arms);
          found.push(sparseWindows(windows, arm, this.#options.windowSamplesMin));
        }
        const windowSeconds = design.windowMicros / MICROS_PER_SECOND;
        const trends = TIME_METRICS.map((metric) => {
          return carryOver(arm, metric, plainEstimate(this.#trendOf(arm, metric)), windowSeconds);
        });
        found.push(trends.find((one) => one !== undefined));
      }
    } else if (design.kind === "split" || (isCanary && canaryPercent !== undefined)) {
      const other = isCanary ? canaryPercent! / 100 : 1 / this.#arms;
      const { shares, draws } = this.#clusters.get("ttft")!.drawn();
      shares.forEach((share, arm) => {
        const expected = isCanary && arm === 0 ? 1 - other : other;
        found.push(sampleRatio({ arm, share, expected, draws }));
      });
    }
    // What answers nothing explains the rest.
    const rank = ({ kind }: Ailment) => (kind === "dead-arm" ? 0 : kind === "sparse" ? 2 : 1);
    return found.filter((one) => one !== undefined).sort((one, other) => rank(one) - rank(other));
  }

  /**
   * Whether of so many blocks hardly any could be compared. As long as no interval has an end none of the level is spent, so
   * that the comparison may begin anew.
   */
  #isBare(arm: number, blocks: number): boolean {
    if (blocks < SPARSE_BLOCKS) return false;
    return TIME_METRICS.every((metric) => {
      const { low } = this.difference(arm, metric, "mean");
      return this.blockSums(arm, metric, "mean").count < COMPARED_SHARE * blocks && !Number.isFinite(low);
    });
  }

  /** How far each arm is from each guardrail, with the requests that have not ended. */
  readings(open: readonly OpenRequest[] = []): GuardrailReading[] {
    const groups = this.#bySession ? this.#groups : undefined;
    const totals = groups === undefined ? this.#totals : this.#totals.map((_, arm) => groups.total(arm));
    return this.#guard.readings(open, { totals, groups, members: this.#members });
  }

  /** Whether a canary may go on to a share of the traffic, in percent, by what its step has shown. */
  canary(nextPercent: number, differences: readonly Difference[] = this.#differences()): CanaryReading {
    const { level, margin = MARGIN_DEFAULT, stepSamplesMin = STEP_SAMPLES_DEFAULT, plan } = this.#options;
    // Of an interval with both ends one is asked for.
    const ofStep = (2 * level) / (plan.design.kind === "canary" ? plan.design.stepPercents.length : 1);
    const share = nextPercent / 100;
    const [metric] = (this.#options.primary ?? PRIMARY_DEFAULT).split(".") as [TimeMetric];
    const { low, mean, high } = this.difference(1, metric, "p50", ofStep);
    const middle = this.#inOrder.total(0).time(metric, "p50");
    const ofMiddle = { value: mean / middle, low: low / middle, high: high / middle, allowed: margin / share };
    const figures: CanaryFigure[] = [{ figure: `${metric}.p50`, ...ofMiddle }];
    const evidence = Math.log(2 / ofStep);
    figures.push(this.#stepShare(this.#inOrder, "error-rate", ERRORS_MARGIN / share, evidence));
    const isTimed = [0, 1].some((arm) => this.#groups.total(arm).samples("ttft") > 0);
    // Requests are ranked among those that end at the same time.
    if (isTimed) figures.push(this.#stepShare(this.#groups, "slow-rate", SLOW_MARGIN / share, evidence));
    const samples = Math.min(...[0, 1].map((arm) => this.#inOrder.total(arm).counts.requests));
    const worse = differences
      .map(({ metric: of, figure, low: least }): SurelyWorse => {
        return { figure: `${of}.${figure}`, low: least / this.#inOrder.total(0).time(of, figure), allowed: margin };
      })
      .find((one) => one.low > margin);
    return canaryReading({ nextPercent, samples, samplesMin: stepSamplesMin, figures, ...(worse && { worse }) });
  }

  /** Of a canary's step: the share of its arm's requests less that of the control's. */
  #stepShare(
    groups: ClusterGroups,
    figure: "error-rate" | "slow-rate",
    allowed: number,
    evidence: number,
  ): CanaryFigure {
    const [control, other] = [0, 1].map((arm) => groups.shareOf(arm, ({ counts }) => RATES[figure](counts)));
    const most = (one: ClusteredShare) => 1 - shareAtLeast(one.independent, 1 - one.share, evidence);
    const least = (one: ClusteredShare) => shareAtLeast(one.independent, one.share, evidence);
    return {
      figure,
      value: other!.share - control!.share,
      low: least(other!) - most(control!),
      high: most(other!) - least(control!),
      allowed,
    };
  }

  /** With the part of the level that the figure has among all, or with another one. */
  difference(arm: number, metric: TimeMetric, figure: TimeFigure, level = this.#levelOf(metric, figure)): Difference {
    const { plan, plannedCount } = this.#options;
    const about = { arm, metric, figure };
    const rules = { design: plan.design, level, plannedCount };
    if (this.#bySession && figure !== "mean") {
      return quantileDifferenceOf(about, this.#quantile(about as Quantile, level), rules);
    }
    return differenceOf(about, this.estimates(arm, metric, figure), rules);
  }

  saved(): SavedJudge {
    return {
      windows: [...this.#windows].map(([window, { endAt, open, arms }]) => {
        return [window, endAt, open, arms.map((arm) => arm.saved())];
      }),
      totals: this.#totals.map((tally) => tally.saved()),
      guard: this.#guard.saved(),
      blocks: [...this.#blocks].map(([block, arms]) => [block, arms.map((tally) => tally?.saved() ?? null)]),
      sums: [...this.#sums].map(([key, sums]) => [key, { ...sums }]),
      clusters: [...this.#clusters].map(([metric, means]) => [metric, means.saved()]),
      ...(this.#memberships.size > 0 && {
        members: this.#members.saved(),
        windowMembers: [...this.#windows].map(([window, { members }]) => [window, members.saved()] as const),
        blockMembers: [...this.#blockMembers].map(([block, members]) => [block, members.saved()] as const),
      }),
      ...(this.#bySession && {
        groups: this.#groups.saved(),
        inOrder: this.#inOrder.saved(),
        order: this.#order.saved(),
        unranked: this.#ranking.saved(),
      }),
      arrivals: this.#arrivals.map((sums) => ({ ...sums })),
      trends: this.#trends.map((sums) => ({ ...sums })),
      history: [...this.#history],
      closedUntil: this.#closedUntil,
      stageFrom: this.#stageFrom,
      lateOutcomes: this.lateOutcomes,
      awaited: this.#awaited.saved(),
    };
  }

  get #treatments(): number[] {
    return Array.from({ length: this.#arms - 1 }, (_, i) => i + 1);
  }

  get #bySession(): boolean {
    const { kind } = this.#options.plan.design;
    return kind === "split" || kind === "canary";
  }

  /** Whether a request came in the later half of what its window compares. */
  #isLater({ slice }: RolloutOutcome): boolean {
    const { design } = this.#options.plan;
    const washoutMicros = design.kind === "switchback" ? design.washoutMicros : 0;
    return slice > sliceOf(0, design.windowMicros, (design.windowMicros + washoutMicros) / 2);
  }

  #windowOf(window: number, endAt: Micros): OpenWindow {
    let open = this.#windows.get(window);
    if (open === undefined) {
      open = { endAt, open: 0, arms: this.#totals.map(() => new ArmTally()), members: this.#noMembers() };
      this.#windows.set(window, open);
    }
    return open;
  }

  /** As measured, and less what the predictions explain. */
  estimates(arm: number, metric: TimeMetric, figure: TimeFigure): readonly [MeanEstimate, MeanEstimate] {
    if (this.#bySession) {
      if (figure !== "mean") {
        const found = this.#quantile({ arm, metric, figure }, this.#levelOf(metric, figure));
        return [found, found];
      }
      const means = this.#clusters.get(metric)!;
      return [means.estimate(arm, false), means.estimate(arm, true)];
    }
    const sums = this.blockSums(arm, metric, figure);
    return [plainEstimate(sums, this.#kindOfBlocks), adjustedEstimate(sums, this.#kindOfBlocks)];
  }

  #quantile(about: Quantile, level: number): QuantileDifference {
    const { count } = this.#clusters.get(about.metric)!.estimate(about.arm, false);
    const prior = priorFor(this.#options.plannedCount, level);
    return quantileDifference(this.#inOrder, about, { clusters: count, level, prior });
  }

  #levelOf(metric: TimeMetric, figure: TimeFigure): number {
    return figureLevel(this.#options, this.#options.plan, `${metric}.${figure}`);
  }

  /** Of the blocks of windows that were compared. */
  blockSums(arm: number, metric: TimeMetric, figure: TimeFigure): BlockSums {
    return this.#sums.get(keyOf(arm, metric, figure)) ?? noBlocks();
  }

  #noMembers(saved?: SavedMembers): MemberTallies {
    return new MemberTallies(this.#options.plan.arms.length, this.#memberships, saved);
  }

  #close(window: number, endAt: Micros, arms: readonly ArmTally[], members: MemberTallies): void {
    this.#history.push({ window, endAt, arms: arms.map(armFigures) });
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
    const { kind } = this.#options.plan.design;
    const block = kind === "switchback" ? Math.floor(window / this.#arms) : window;
    for (const known of this.#blocks.keys()) {
      if (known >= block - 1) continue;
      this.#blocks.delete(known);
      this.#blockMembers.delete(known);
    }
    const ofMembers = this.#blockMembers.get(block) ?? this.#noMembers();
    this.#blockMembers.set(block, ofMembers);
    ofMembers.merge(members);
    const whole = this.#blocks.get(block) ?? arms.map(() => undefined);
    this.#blocks.set(block, whole);
    arms.forEach((tally, arm) => {
      if (tally.counts.requests > 0) whole[arm] = tally;
    });
    if (whole.includes(undefined)) return;
    this.#blocks.delete(block);
    this.#blockMembers.delete(block);
    this.#compare(whole as ArmTally[]);
    if (!this.#bySession) this.#guard.compareBlock(whole as ArmTally[], ofMembers);
    this.#addHealth(whole as ArmTally[]);
  }

  #trendOf(arm: number, metric: TimeMetric): BlockSums {
    return this.#trends[arm * TIME_METRICS.length + TIME_METRICS.indexOf(metric)]!;
  }

  #addHealth(arms: readonly ArmTally[]): void {
    const [control] = arms;
    for (const arm of this.#treatments) {
      const [own, others] = [arms[arm]!.counts.requests, control!.counts.requests];
      addBlock(this.#arrivals[arm]!, (own - others) / (own + others), 0);
      for (const metric of TIME_METRICS) {
        const trend = arms[arm]!.trend(metric) - control!.trend(metric);
        if (Number.isFinite(trend)) addBlock(this.#trendOf(arm, metric), trend, 0, (own * others) / (own + others));
      }
    }
  }

  #compare(arms: readonly ArmTally[]): void {
    const control = arms[0]!;
    for (const arm of this.#treatments) {
      const tally = arms[arm]!;
      for (const metric of TIME_METRICS) {
        const [own, others] = [tally.samples(metric), control.samples(metric)];
        if (Math.min(own, others) < this.#options.windowSamplesMin) continue;
        const covariate = (tally.predicted(metric) ?? NaN) - (control.predicted(metric) ?? NaN);
        // As sure as the difference of two means of so many is: half the requests where both arms have as many.
        const weight = (own * others) / (own + others);
        for (const figure of TIME_FIGURES) {
          const key = keyOf(arm, metric, figure);
          const sums = this.#sums.get(key) ?? noBlocks();
          this.#sums.set(key, sums);
          const difference = tally.time(metric, figure) - control.time(metric, figure);
          addBlock(sums, difference, Number.isNaN(covariate) ? 0 : covariate, weight);
        }
      }
    }
  }
}

function keyOf(arm: number, metric: TimeMetric, figure: TimeFigure): string {
  return `${arm} ${metric} ${figure}`;
}

function restored(saved: SavedTally | null): ArmTally | undefined {
  return saved === null ? undefined : new ArmTally(saved);
}
