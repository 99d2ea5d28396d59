import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { type CanaryReading, MARGIN_DEFAULT } from "./judge/canary-reading.ts";
import { TENANTS_MIN } from "./judge/clusters-needed.ts";
import { effectFound } from "./judge/confidence-sequence.ts";
import { PRIMARY_DEFAULT } from "./judge/figure-key.ts";
import type { Judge } from "./judge/judge.ts";
import type { JudgeRules } from "./judge/judge-rules.ts";
import type { TimeFigure, TimeMetric } from "./judge/outcome.ts";
import type { Difference } from "./judge/verdict.ts";
import type { Design } from "./plan/rollout-plan.ts";
import { canaryPercent, type RolloutState } from "./rollout-state.ts";

/** What follows from the measurement. */
export type Advice = "roll back" | "promote" | "wait" | "none";

/** What a rollout has found so far, in a sentence, and what follows from it. */
export interface VerdictLine {
  readonly text: string;
  readonly advice: Advice;
  /** What counts as one that were compared, and those that the plan counts with; of the arm with the fewest. */
  readonly done: number;
  readonly planned: number;
  /** blocks, windows, sessions, tenants or requests. */
  readonly unit: string;
}

/** Of which probability a difference is to be found that "could be found": 80 %. */
const STANDARD_ERRORS = 0.84;

/** More time does not help: the same tenants come again. */
const TENANTS_NEEDED = `nothing is found of fewer than ${TENANTS_MIN} tenants of about one size an arm, however long it runs`;

/** Of a switchback whose requests nobody predicts: what it is slow to see. */
export const UNPREDICTED =
  "nothing is predicted of its requests, so that a p99 twice as long may take four hours to be seen, with predictions two";

const UNITS: Readonly<Record<Exclude<Design["kind"], "split" | "canary">, string>> = {
  switchback: "blocks",
  pools: "windows",
  shadow: "requests",
};

/** The verdict in one line: the same on the command line, the page, in the API and the report. */
export function verdictLine(state: RolloutState, judge: Judge, rules: JudgeRules, at: Micros): VerdictLine {
  const { plan, phase } = state;
  const { design, arms } = plan;
  const unit = design.kind === "split" || design.kind === "canary" ? `${design.by}s` : UNITS[design.kind];
  const others = arms.map((_, arm) => arm).slice(1);
  const counts = others.map((arm) => judge.difference(arm, "e2e", "mean").count);
  const done = Math.floor(Math.min(...counts.map((count) => (Number.isFinite(count) ? count : 0))));
  const planned = Math.ceil(rules.plannedCount);
  const line = (text: string, advice: Advice): VerdictLine => ({ text, advice, done, planned, unit });
  const isByTenant = "by" in design && design.kind !== "pools" && design.by === "tenant";
  const isBlind = design.kind === "switchback" && rules.awaitsPredictions !== true;
  const few = isByTenant ? `; ${TENANTS_NEEDED}` : isBlind ? `; ${UNPREDICTED}` : "";
  if (phase === "planned") return line(`not begun: what the policy does is watched first${few}`, "none");
  const after = done > planned ? `after ${done} ${unit}` : `after ${done} of ${planned} ${unit}`;
  if (phase === "rolled-back") return line(`rolled back ${after}: ${state.reason}`, "none");
  if (phase === "promoted") return line(`${state.promoted} was promoted ${after}: ${state.reason}`, "none");
  if (design.kind === "shadow") return line("the control routes everything; see how often the arms agree", "none");
  const requests = judge.totals.reduce((sum, { counts: { requests: one } }) => sum + one, 0);
  const paused = phase === "paused" ? `paused (${state.reason}); ` : "";
  if (requests === 0) return line(`${paused}nothing is known: no request was measured${few}`, "wait");
  const tolerated = design.kind === "canary" ? (rules.margin ?? MARGIN_DEFAULT) : 0;
  const found = others.map((arm) => ofArm(arm, arms[arm]!.name, judge, rules, { tolerated, isByTenant }));
  const advice = ADVICE_ORDER.find((one) => found.some((each) => each.advice === one)) ?? "wait";
  const known = found.filter(({ advice: one }) => one !== "wait");
  const texts = (known.length > 0 ? known : found).map(({ text }) => text);
  const [ailment] = judge.ailments(canaryPercent(state));
  if (ailment !== undefined)
    return line(`${paused}${after}: not to be trusted: ${arms[ailment.arm]!.name}: ${ailment.sentence}`, "wait");
  if (design.kind === "pools" && design.redrawn !== true)
    return line(
      `${paused}${after}: cannot be known by this design: two pools are two values however long it runs; limits alone watch it`,
      "wait",
    );
  const nextPercent = design.kind === "canary" ? design.stepPercents[state.canaryStep + 1] : undefined;
  if (nextPercent !== undefined && advice === "wait") {
    return line(`${paused}${after}: ${holdText(judge.canary(nextPercent), at - state.startedAt)}`, "wait");
  }
  const more = advice === "wait" && phase === "running" && !isByTenant ? moreText(state, done, planned, at) : "";
  const what = advice === "wait" ? "" : `; ${advice}`;
  return line(`${paused}${after}: ${texts.join("; ")}${what}${more}`, advice);
}

/** What keeps a canary's step, and for how long if all goes on as it does. */
function holdText({ nextPercent, samples, samplesMin, figures, timesAsLong, outcome }: CanaryReading, elapsed: Micros) {
  if (outcome === "advance") return `harm beyond the margin is ruled out: ${nextPercent} % next`;
  const open = figures.filter(({ high, allowed }) => high > allowed);
  const [worst] = open.toSorted((one, other) => other.high / other.allowed - one.high / one.allowed);
  const why =
    samples < samplesMin || worst === undefined
      ? `${samples} of ${samplesMin} requests of an arm`
      : `${worst.figure} may be ${Number.isFinite(worst.high) ? percentText(worst.high) : "any amount"} worse, ${percentText(worst.allowed)} allowed`;
  const more = timesAsLong === undefined ? "" : `; about ${spanText((timesAsLong - 1) * elapsed)} more`;
  return `holds before ${nextPercent} %: ${why}${more}`;
}

/** Of a difference's standard errors, squared: what looking until it was sure has added. */
const LUCK = 2;

/**
 * What is likely of a difference that stopped a rollout: one that is looked at until it is sure has been lucky, the more
 * the fewer standard errors it is from 0. Never beyond its interval. A rollout that hardly ever finds a difference of that
 * size has been luckier than can be known from it.
 */
export function shrunkMean({ count, mean, low, high, deviation }: Difference): number {
  const squared = (count * mean * mean) / (deviation * deviation);
  const part = squared > LUCK ? 1 - LUCK / squared : 0;
  return Math.min(high, Math.max(low, mean * part));
}

const ADVICE_ORDER: readonly Advice[] = ["roll back", "promote", "wait"];

function ofArm(
  arm: number,
  name: string,
  judge: Judge,
  { primary = PRIMARY_DEFAULT, plannedCount }: JudgeRules,
  { tolerated, isByTenant }: { readonly tolerated: number; readonly isByTenant: boolean },
): { readonly text: string; readonly advice: Advice } {
  const [control, other] = [judge.totals[0]!, judge.totals[arm]!];
  const [metric, figure] = primary.split(".") as [TimeMetric, TimeFigure];
  const mean = judge.difference(arm, metric, figure);
  const called = `${metric.toUpperCase()} ${figure}`;
  const bare = [other, control].findIndex(({ counts }) => counts.requests === 0);
  if (bare >= 0) return { text: `${bare === 0 ? name : "the control"} had no request yet`, advice: "wait" };
  const errors =
    control.counts.failed + other.counts.failed === 0
      ? ""
      : `, errors ${share(other.errorRate)} against ${share(control.errorRate)}`;
  if (mean.low > 0 || mean.high < 0) {
    const isSlower = mean.low > 0;
    const p99 = figure === "p99" ? "" : sureText(metric, "p99", arm, judge);
    const base = control.time(metric, figure);
    const likely = percentText(Math.abs(shrunkMean(mean) / base));
    const isTolerated = isSlower && mean.low <= tolerated * base;
    const margin = isTolerated ? `, perhaps within the ${percentText(tolerated)} that it may be` : "";
    const text = `${name} is ${isSlower ? "slower" : "quicker"} by ${rangeText(mean.low, mean.high, base)}, likely ${likely} (${called}${p99}${errors})${margin}`;
    return { text, advice: isTolerated ? "wait" : isSlower ? "roll back" : "promote" };
  }
  const { deviation, count } = mean;
  const findable =
    Number.isFinite(mean.low) && deviation >= 0
      ? effectFound(count, deviation, { level: mean.level, standardErrors: STANDARD_ERRORS }) /
        control.time(metric, figure)
      : Infinity;
  const even = Math.floor(judge.estimates(arm, metric, figure)[0].degrees + 1);
  const none = isByTenant
    ? `an arm's tenants say as much as ${even} of one size; ${TENANTS_NEEDED}`
    : "too little to find anything";
  const could = Number.isFinite(findable) ? `could find ${percentText(findable)} now` : none;
  if (count >= plannedCount && Number.isFinite(mean.low)) {
    const base = control.time(metric, figure);
    const [low, high] = [mean.low / base, mean.high / base].map(signedPercent);
    return { text: `${name} is not found to differ: ${low} to ${high} (${called}${errors})`, advice: "wait" };
  }
  return { text: `not known yet whether ${name} differs: ${could}${errors}`, advice: "wait" };
}

function sureText(metric: TimeMetric, figure: TimeFigure, arm: number, judge: Judge): string {
  const { low, high } = judge.difference(arm, metric, figure);
  if (!(low > 0 || high < 0)) return "";
  const base = judge.totals[0]!.time(metric, figure);
  return `, ${figure} ${signedPercent(low / base)} to ${signedPercent(high / base)}`;
}

function rangeText(low: number, high: number, base: number): string {
  const [from, to] = [Math.min(Math.abs(low), Math.abs(high)), Math.max(Math.abs(low), Math.abs(high))];
  return `${percentText(from / base).replace(" %", "")} to ${percentText(to / base)}, ${millisText(from)} to ${millisText(to)} ms`;
}

/** How long until as much is known as the plan asks for, as things come. */
function moreText({ plan, startedAt }: RolloutState, done: number, planned: number, at: Micros): string {
  const left = planned - done;
  if (left <= 0) return "";
  const { design, arms } = plan;
  const each =
    design.kind === "switchback"
      ? arms.length * design.windowMicros
      : design.kind === "pools"
        ? design.windowMicros
        : (at - startedAt) / done;
  return Number.isFinite(each) ? `; about ${spanText(left * each)} more` : "";
}

const SECONDS_PER_MINUTE = 60;
const MINUTES_PER_HOUR = 60;

function spanText(micros: Micros): string {
  const minutes = micros / MICROS_PER_SECOND / SECONDS_PER_MINUTE;
  if (minutes < 2) return `${Math.max(1, Math.round(minutes * SECONDS_PER_MINUTE))} s`;
  if (minutes < 2 * MINUTES_PER_HOUR) return `${Math.round(minutes)} minutes`;
  return `${Math.round(minutes / MINUTES_PER_HOUR)} hours`;
}

function share(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}

function percentText(value: number): string {
  const percent = 100 * value;
  return `${percent < 10 ? Number(percent.toPrecision(2)) : Math.round(percent)} %`;
}

function signedPercent(value: number): string {
  return `${value < 0 ? "-" : "+"}${percentText(Math.abs(value))}`;
}

function millisText(micros: Micros): string {
  return String(Number((micros / MICROS_PER_MILLI).toPrecision(3)));
}
