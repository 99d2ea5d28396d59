import type { WindowFigures } from "#core/rollout/judge/arm-figures.ts";
import type { ArmTally } from "#core/rollout/judge/arm-tally.ts";
import type { GuardrailReading } from "#core/rollout/judge/guardrail.ts";
import { TIME_METRICS, type TimeMetric } from "#core/rollout/judge/outcome.ts";
import type { Difference, Verdict } from "#core/rollout/judge/verdict.ts";
import type { RolloutSpec } from "#core/rollout/rollout-input.ts";
import { switchbackArm } from "#core/rollout/assignment.ts";
import { type RolloutState, windowAt } from "#core/rollout/rollout-state.ts";
import { verdictLine } from "#core/rollout/verdict-line.ts";
import type { JudgeScope } from "./judge-share.ts";
import type { RolloutWatch } from "#core/rollout-watch.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type {
  ArmView,
  ComparedWindowView,
  DesignView,
  DifferenceView,
  FiguresView,
  GuardrailView,
  IntervalsView,
  PredictionView,
  RolloutView,
  StepView,
  TimeView,
  WindowTimes,
  WindowView,
} from "#live/admin/rollout-view.ts";

/** What the host remembers of a rollout beside the core. */
export interface RolloutStory {
  readonly steps: readonly StepView[];
  readonly intervals: readonly IntervalsView[];
}

export interface ViewedRollout extends RolloutStory {
  readonly watch: RolloutWatch;
  readonly rules: RolloutSpec["rules"];
  /** Left out where there is one gateway. */
  readonly scope?: JudgeScope | undefined;
}

const CONTROL = 0;

/** `wallOf` gives the ISO time of a time of the router's clock. */
export function rolloutViewOf(
  { watch, rules, scope, steps, intervals }: ViewedRollout,
  at: Micros,
  wallOf: (at: Micros) => string,
): RolloutView {
  const { state, judge } = watch;
  const { plan, phase } = state;
  const { design } = plan;
  const verdict = watch.verdict(at);
  const name = (arm: number) => plan.arms[arm]!.name;
  return {
    name: plan.name,
    model: plan.model,
    phase,
    since: wallOf(state.at),
    reason: state.reason,
    by: steps.at(-1)?.by ?? "",
    verdict: verdictLine(state, judge, rules, at),
    health: verdict.ailments.map(({ arm, sentence }) => `${name(arm)}: ${sentence}`),
    scope: scopeText(scope),
    design: designView(design),
    arms: plan.arms.map((_, arm) => armView(watch, arm, at)),
    window: phase === "running" ? windowView(state, at, wallOf) : null,
    canary: design.kind === "canary" ? { step: state.canaryStep, stepPercents: design.stepPercents } : null,
    cooldownEndsAt: phase === "rolled-back" ? wallOf(state.at + plan.cooldownMicros) : null,
    level: rules.level,
    differences: verdict.differences.map((one) => differenceView(one, name)),
    guardrails: watch.readings(at).map((one) => guardrailView(one, name)),
    predictions: predictionViews(rules, verdict, name),
    steps,
    intervals,
    windows: judge.history.slice(-WINDOWS_MAX).map((one) => comparedWindowView(one, wallOf)),
    inFlight: watch.inFlight,
    lateOutcomes: judge.lateOutcomes,
    outOfOrder: judge.outOfOrder,
    adjustment: rules.awaitsPredictions === true ? adjustmentView(judge) : null,
  };
}

function scopeText(scope: JudgeScope | undefined): string {
  if (scope === undefined) return "";
  const { of, replicas, by, problem } = scope;
  if (of === "fleet") return `what ${replicas} ${replicas === 1 ? "gateway sees" : "gateways see"}, judged by ${by}`;
  return `this gateway's own share alone${problem === "" ? "" : `: ${problem}`}`;
}

function adjustmentView({ awaited: { predicted, unpredicted, size } }: RolloutWatch["judge"]) {
  return { predicted, unpredicted, waiting: size };
}

/** Mean and p99 of every difference at a time, for a chart. */
export function intervalsAt(watch: RolloutWatch, at: Micros, wallOf: (at: Micros) => string): IntervalsView {
  const { plan } = watch.state;
  const { differences } = watch.verdict(at);
  return {
    at: wallOf(at),
    window: windowAt(watch.state, at),
    differences: differences
      .filter(({ figure }) => figure === "mean" || figure === "p99")
      .map(({ arm, metric, figure, mean, low, high }) => ({
        arm: plan.arms[arm]!.name,
        metric,
        figure,
        meanMillis: millis(mean),
        lowMillis: millis(low),
        highMillis: millis(high),
      })),
  };
}

/** Windows that a chart has room for. */
const WINDOWS_MAX = 60;

function comparedWindowView({ window, endAt, arms }: WindowFigures, wallOf: (at: Micros) => string) {
  return {
    window,
    endedAt: wallOf(endAt),
    arms: arms.map(({ requests, times }) => {
      const of = (metric: TimeMetric): WindowTimes => {
        const { mean, p50, p90 } = times[metric];
        const shown = (micros: number | null) => (micros === null ? null : millis(micros));
        return { meanMillis: shown(mean), p50Millis: shown(p50), p90Millis: shown(p90) };
      };
      return { requests, times: { ttft: of("ttft"), tpot: of("tpot"), e2e: of("e2e") } };
    }),
  } satisfies ComparedWindowView;
}

function designView(design: RolloutState["plan"]["design"]): DesignView {
  return {
    kind: design.kind,
    windowMillis: design.windowMicros / MICROS_PER_MILLI,
    washoutMillis: design.kind === "switchback" ? design.washoutMicros / MICROS_PER_MILLI : null,
    by: "by" in design ? design.by : null,
    label: design.kind === "pools" ? design.label : null,
  };
}

function windowView(state: RolloutState, at: Micros, wallOf: (at: Micros) => string): WindowView {
  const { plan, startedAt, firstWindow } = state;
  const { design } = plan;
  const number = windowAt(state, at);
  const start = startedAt + (number - firstWindow) * design.windowMicros;
  const isSwitchback = design.kind === "switchback";
  return {
    number,
    startedAt: wallOf(start),
    endsAt: wallOf(start + design.windowMicros),
    arm: isSwitchback ? plan.arms[switchbackArm(plan, number)]!.name : null,
    isWashout: isSwitchback && at - start < design.washoutMicros,
  };
}

function armView({ state, judge, agreements }: RolloutWatch, arm: number, at: Micros): ArmView {
  const { name, profile, pool } = state.plan.arms[arm]!;
  const { decisions, agreed, addedHitTokens } = agreements[arm]!;
  const decidesToo = state.plan.design.kind === "shadow" && arm !== CONTROL;
  return {
    name,
    profile,
    pool: state.plan.design.kind === "pools" ? (pool ?? null) : null,
    isControl: arm === CONTROL,
    sharePercent: sharePercent(state, arm, at),
    total: figuresView(judge.totals[arm]!),
    agreement: decidesToo
      ? { decisions, agreed, addedHitTokensMean: decisions === 0 ? null : addedHitTokens / decisions }
      : null,
  };
}

function sharePercent(state: RolloutState, arm: number, at: Micros): number {
  const { plan, phase, promoted } = state;
  if (phase === "promoted") return plan.arms[arm]!.name === promoted ? 100 : 0;
  if (phase !== "running") return arm === CONTROL ? 100 : 0;
  const { design } = plan;
  switch (design.kind) {
    case "switchback":
      return switchbackArm(plan, windowAt(state, at)) === arm ? 100 : 0;
    case "canary": {
      const other = design.stepPercents[state.canaryStep]!;
      return arm === CONTROL ? 100 - other : other;
    }
    case "shadow":
      return arm === CONTROL ? 100 : 0;
    case "pools":
    case "split":
      return 100 / plan.arms.length;
  }
}

function figuresView(tally: ArmTally): FiguresView {
  const { requests, failed, refused } = tally.counts;
  const times = TIME_METRICS.map((metric): [TimeMetric, TimeView] => [
    metric,
    {
      samples: tally.samples(metric),
      meanMillis: millis(tally.time(metric, "mean")),
      p50Millis: millis(tally.time(metric, "p50")),
      p90Millis: millis(tally.time(metric, "p90")),
      p99Millis: millis(tally.time(metric, "p99")),
    },
  ]);
  return {
    requests,
    failed,
    refused,
    errorRate: known(tally.errorRate),
    refusedRate: known(tally.refusedRate),
    hitRatio: known(tally.hitRatio),
    goodput: known(tally.goodput),
    imbalance: known(tally.imbalance),
    times: Object.fromEntries(times) as FiguresView["times"],
  };
}

function differenceView(
  { arm, metric, figure, count, mean, low, high, varianceLeft }: Difference,
  name: (arm: number) => string,
): DifferenceView {
  return {
    arm: name(arm),
    metric,
    figure,
    count,
    meanMillis: millis(mean),
    lowMillis: millis(low),
    highMillis: millis(high),
    isSignificant: low > 0 || high < 0,
    varianceLeft: known(varianceLeft),
  };
}

function guardrailView(
  { arm, guardrail, value, low, control, limit, samples, crossed }: GuardrailReading,
  name: (arm: number) => string,
): GuardrailView {
  const { figure, absoluteMax, relativeMax, each, samplesMin } = guardrail;
  const isShare = figure.endsWith("-rate");
  const shown = (one: number | undefined) => (one === undefined ? null : isShare ? known(one) : millis(one));
  return {
    arm: name(arm),
    figure,
    unit: isShare ? "share" : "millis",
    value: shown(value),
    low: shown(low),
    control: shown(control),
    limit: shown(limit),
    absoluteMax: shown(absoluteMax),
    relativeMax: relativeMax ?? null,
    each: each ?? null,
    samples,
    samplesMin,
    crossed,
  };
}

function predictionViews(
  { predictions }: RolloutSpec["rules"],
  { differences, contradictions }: Verdict,
  name: (arm: number) => string,
): PredictionView[] {
  return predictions.map((prediction) => {
    const { arm, metric, figure, low, high } = prediction;
    const found = differences.find((one) => one.arm === arm && one.metric === metric && one.figure === figure)!;
    const isContradicted = contradictions.some((one) => one.prediction === prediction);
    const agrees = found.low >= low && found.high <= high;
    return {
      arm: name(arm),
      metric,
      figure,
      lowMillis: low / MICROS_PER_MILLI,
      highMillis: high / MICROS_PER_MILLI,
      verdict: isContradicted ? "contradicted" : agrees ? "agrees" : "open",
    };
  });
}

function millis(micros: Micros): number | null {
  return known(micros / MICROS_PER_MILLI);
}

function known(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
