import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import type { Interval } from "#shadow/figure/interval.ts";
import { TENANTS_MIN } from "#core/rollout/judge/clusters-needed.ts";
import { VALUES_MIN } from "#core/rollout/judge/confidence-sequence.ts";
import { type DesignStudy, type FigureStudy, isFixed } from "#shadow/rollout/design-study.ts";
import { isBiased, NOTHING_KNOWN } from "#shadow/rollout/recommendation.ts";
import { type PlannedFigureKey, PLANNED_FIGURES } from "#shadow/job/rollout-sample.ts";
import { type ArmTruth, controlFigure, type RolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import {
  brokenName,
  figureTable,
  millisOf,
  percentOf,
  signedMillis,
  signedPercentOf,
  wrapped,
} from "../output/figure-text.ts";

const KEYS: readonly PlannedFigureKey[] = TIME_METRICS.flatMap((metric) =>
  PLANNED_FIGURES.map((figure): PlannedFigureKey => `${metric}.${figure}`),
);
const HEADS: Readonly<Record<string, string>> = { ttft: "TTFT", tpot: "TPOT", e2e: "E2E", mean: "mean", p99: "p99" };
const NAME_WIDTH = 20;

/** The plan for people: the verdict, then the truth, each design's bias and time, and what it can find. */
export function rolloutPlanTable(study: RolloutStudy, guessedEngine?: string): string {
  const { control, other, requests, spanMicros, startMicros, runs, hours } = study;
  const minutes = (micros: number) => (micros / 60e6).toFixed(1);
  const parts = [
    wrapped(verdict(study, guessedEngine)),
    "",
    wrapped(
      `${requests} requests in ${minutes(spanMicros)} minutes, compared from minute ${minutes(startMicros)} on; ` +
        `milliseconds. The whole fleet by each profile, simulated:`,
    ),
    truthTable(study),
    ...sessionLines(study),
    wrapped(
      `What each design shows of ${titleOf(study.figure)}, ${other} less ${control} (${runs} simulated rollouts each; ` +
        `+- a standard error), and how long it runs to find that with a power of ${percentOf(study.power)}, ` +
        `as measured, and adjusted by the simulator's predictions of each window:`,
    ),
    designTable(study),
    ...tenantLines(study),
    ...fewLines(study),
    wrapped(
      "Bias of each design, by figure; * more than chance and more than a fifth of the truth, ? not known whether it is:",
    ),
    biasTable(study),
    ...predictionLines(study),
    ...guardrailLines(study),
    ...hours.flatMap((duration, i) => [
      wrapped(
        `Smallest difference that is found in ${duration} hours, and below it adjusted by predictions; ` +
          `p99 is that of windows, averaged:`,
      ),
      detectableTable(study, i),
    ]),
  ];
  return `${parts.join("\n")}\n`;
}

function titleOf(key: PlannedFigureKey): string {
  const [metric, figure] = key.split(".") as [string, string];
  return `${figure === "mean" ? "mean" : "p99 of"} ${HEADS[metric]}`;
}

/** One sentence: which design, for how long, and what the cheapest one would have got wrong. */
function verdict(study: RolloutStudy, guessedEngine: string | undefined): string {
  const { control, other, figure, designs, recommendation, power } = study;
  const [before, after] = [controlFigure(study.truth.control, figure), controlFigure(study.truth.other, figure)];
  const change = after - before;
  const size = `${millisOf(Math.abs(change))} ms (${signedPercentOf(change / before)})`;
  const known =
    Math.abs(change) < 0.001 * before
      ? `${titleOf(figure)} is expected to be the same under ${other} and ${control}`
      : `${other} is expected to ${change < 0 ? "take" : "add"} ${size} ${change < 0 ? "off" : "to"} ${control}'s ${titleOf(figure)}`;
  const advised = designs.find(({ name }) => name === recommendation.design);
  const chosen = advised?.figures[figure];
  const time = recommendation.hours === undefined ? "" : ` for ${duration(recommendation.hours)}`;
  const finds =
    recommendation.hours === undefined
      ? ""
      : `, which finds that with a probability of ${percentOf(power)}${rangeText(chosen?.hoursRange)}`;
  const advice = `run ${spoken(recommendation.design)}${time}${finds}`;
  const anyway = recommendation.hours === undefined ? chanceText(advised, figure, study.hours[0]) : "";
  const warning = recommendation.warning === "" ? "" : ` (${recommendation.warning})`;
  const wrong = designs.filter(
    (one) =>
      isBiased(one, figure, before) && one.name !== recommendation.design && Number.isFinite(one.figures[figure].bias),
  );
  const worst = wrong.toSorted((a, b) => Math.abs(b.figures[figure].bias) - Math.abs(a.figures[figure].bias))[0];
  const would =
    worst === undefined
      ? ""
      : ` ${capital(spoken(worst.name))} would have shown ${signedMillis(worst.figures[figure].estimate)} ms.`;
  const guess =
    guessedEngine === undefined ? "" : ` All of this rests on the engine ${guessedEngine}, which is a guess.`;
  if (recommendation.warning === NOTHING_KNOWN) return `${known}; ${recommendation.warning}.${guess}`;
  return `${known}: ${advice}${warning}.${anyway}${would}${guess}`;
}

/** A probability below it is none to count on, and of so little traffic it is hardly known. */
const POWER_MIN = 0.2;

/** Of fewer blocks the judge asks for a mean of two deviations and more, and one block that stands out makes both. */
const BLOCKS_MIN = 10;

/** What a rollout of so many hours would find, where none is long enough. */
function chanceText(advised: DesignStudy | undefined, figure: PlannedFigureKey, hours = 0): string {
  const chosen = advised?.figures[figure];
  const [share, range] = [chosen?.powers[0], chosen?.powerRanges[0]];
  if (chosen === undefined || share === undefined) return "";
  const blocks = Math.floor(hours * chosen.valuesPerHour);
  const isFew = advised?.design.kind === "switchback" && blocks < BLOCKS_MIN;
  const few = isFew ? `, and what ${blocks} blocks differ by is hardly known` : "";
  const chance = `with a probability of ${isFew ? "at most " : ""}${percentOf(share)}${rangeText(range)}${few}`;
  if (share >= POWER_MIN) return ` In ${hours} hours it would find that ${chance}.`;
  const [least] = chosen.detectable;
  const from = Number.isFinite(least) ? `differences from ${millisOf(least!)} ms on are` : "no difference is";
  return ` It is not to be found in ${hours} hours (${chance}): ${from} found by then.`;
}

/** How much the probability depends on the traffic that comes. */
function rangeText(range: Interval | undefined): string {
  return range === undefined ? "" : `, ${percentOf(range.low)} to ${percentOf(range.high)} by the traffic that comes`;
}

/** A design's name in a sentence. */
function spoken(design: string): string {
  return design === "pools" ? "two pools" : `a ${design.replace("switchback ", "switchback with windows of ")}`;
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function truthTable({ truth, control, other }: RolloutStudy): string {
  const table = figureTable(["profile", ...KEYS.map(headOf)], [NAME_WIDTH, ...KEYS.map(() => 12)]);
  const row = (arm: ArmTruth) => KEYS.map((key) => controlFigure(arm, key));
  const [before, after] = [row(truth.control), row(truth.other)];
  table.push([brokenName(control, NAME_WIDTH), ...before.map(millisOf)]);
  table.push([brokenName(other, NAME_WIDTH), ...after.map(millisOf)]);
  table.push([
    "difference",
    ...after.map((value, i) => `${signedMillis(value - before[i]!)}\n${signedPercentOf(value / before[i]! - 1)}`),
  ]);
  return table.toString();
}

/** From a session's first request to its last answer, where sessions of several requests are known. */
function sessionLines({ truth, control, other, requests }: RolloutStudy): string[] {
  const [before, after] = [truth.control.sessions, truth.other.sessions];
  if (before === undefined || after === undefined || before.count >= requests) return [];
  const of = (figure: "mean" | "p99") =>
    `${millisOf(before[figure])} and ${millisOf(after[figure])} ms (${signedPercentOf(after[figure] / before[figure] - 1)})`;
  return [
    wrapped(
      `From a session's first request to its last answer under ${control} and ${other}: ${of("mean")} on average, ` +
        `${of("p99")} at the 99th percentile, of ${before.count} and ${after.count} sessions.`,
    ),
  ];
}

function designTable({ designs, figure }: RolloutStudy): string {
  const heads = ["design", "truth", "shows", "bias", "runs for", "adjusted", "variance left"];
  const table = figureTable(heads, [NAME_WIDTH, 10, 10, 18, 12, 12, 10]);
  for (const study of designs) {
    const one = study.figures[figure];
    table.push([
      brokenName(study.name, NAME_WIDTH),
      shownText(one.truth),
      shownText(one.estimate),
      Number.isFinite(one.bias) ? `${signedMillis(one.bias)} +- ${knownText(one.biasError, millisOf)}` : NOT_KNOWN,
      timeCell(one, one.hours, isFixed(study.design)),
      timeCell(one, one.hoursAdjusted, isFixed(study.design)),
      knownText(one.varianceLeft, percentOf),
    ]);
  }
  return table.toString();
}

const NOT_KNOWN = "not known";

function knownText(value: number | undefined, text: (value: number) => string): string {
  return value === undefined ? NOT_KNOWN : text(value);
}

/** Of a difference, which is no number where an arm had no request. */
function shownText(micros: number): string {
  return Number.isFinite(micros) ? signedMillis(micros) : NOT_KNOWN;
}

/** What is to be seen in the end, so that a rollout can be held against it. */
function predictionLines({ shown, traffic, recommendation, figure, hours }: RolloutStudy): string[] {
  const [interval, parts] = [shown[figure], traffic[figure]];
  if (parts === undefined) {
    return [wrapped("The trace is too short to show how its parts differ, so nothing is predicted of other traffic.")];
  }
  if (interval === undefined) return [];
  const heldOut = `of its ${parts.of} parts, each held out, ${parts.covered} came out as the others had it expected`;
  const range = `${signedMillis(interval.low)} to ${signedMillis(interval.high)} ms`;
  return [
    wrapped(
      `${capital(spoken(recommendation.design))} of ${duration(recommendation.hours ?? hours[0] ?? 1)} would show ${range} of ${titleOf(figure)} on other traffic of the kind (90 %); ${heldOut}.`,
    ),
  ];
}

/** What would end it, since no document has named other limits yet. */
function guardrailLines({ guarded, recommendation }: RolloutStudy): string[] {
  if (guarded === undefined) return [];
  const limits = guarded.guardrails.map(limitText).join(", ");
  const many = guarded.takenBack === 0 ? "none" : String(guarded.takenBack);
  return [
    wrapped(
      `With the guardrails that a rollout has where its document names none (${limits}), ${many} of ${guarded.runs} ` +
        `simulated rollouts of ${spoken(recommendation.design)} would have been taken back.`,
    ),
  ];
}

function limitText({ figure, each, absoluteMax, relativeMax }: Guardrail): string {
  const limits = [
    ...(relativeMax === undefined ? [] : [`${relativeMax} times the control's`]),
    ...(absoluteMax === undefined
      ? []
      : [figure.endsWith("-rate") ? percentOf(absoluteMax) : `${millisOf(absoluteMax)} ms`]),
  ];
  return `${figure}${each === undefined ? "" : ` of each ${each}`} at most ${limits.join(" or ")}`;
}

/** Of a split by tenant, which finds nothing however long it runs where it has too few of them. */
function tenantLines({ designs, figure }: RolloutStudy): string[] {
  return designs.flatMap(({ name, design, figures }) => {
    const { clusters, hours } = figures[figure];
    if (!isFixed(design) || hours !== undefined) return [];
    return [
      wrapped(
        `${capital(spoken(name))} compares ${Math.round(clusters)} tenants, and more time brings no others: it does not find ` +
          `this difference however long it runs. At least ${TENANTS_MIN} an arm are asked for that have about as many requests.`,
      ),
    ];
  });
}

/** Of designs whose rollouts, as long as the trace, have fewer values than the judge asks for. */
function fewLines({ designs, figure }: RolloutStudy): string[] {
  const few = designs.filter(({ design, figures }) => figures[figure].biasError === undefined && !isFixed(design));
  if (few.length === 0) return [];
  return [
    wrapped(
      `Of ${few.map(({ name }) => name).join(", ")} the trace has fewer than ${VALUES_MIN} values to compare (blocks of two ` +
        `windows, or what is split, in each arm), so what they differ by is not known: a longer trace or shorter windows show it.`,
    ),
  ];
}

/** `fixed`: more time brings no more of what is compared. */
function timeCell({ truth, estimate, biasError }: FigureStudy, hours: number | undefined, fixed: boolean): string {
  if (biasError === undefined) return fixed ? "never" : NOT_KNOWN;
  if (truth * estimate < 0 && Math.abs(estimate) > 2 * biasError) return "wrong sign";
  return hours === undefined ? (fixed ? "never" : "too long") : duration(hours);
}

function biasTable(study: RolloutStudy): string {
  const table = figureTable(["design", ...KEYS.map(headOf)], [NAME_WIDTH, ...KEYS.map(() => 12)]);
  for (const one of study.designs) {
    const cells = KEYS.map((key) => {
      const isUnsure = one.figures[key].biasError === undefined;
      const mark = isUnsure ? " ?" : isBiased(one, key, controlFigure(study.truth.control, key)) ? " *" : "";
      const { bias } = one.figures[key];
      return Number.isFinite(bias) ? `${signedMillis(bias)}${mark}` : NOT_KNOWN;
    });
    table.push([brokenName(one.name, NAME_WIDTH), ...cells]);
  }
  return table.toString();
}

function detectableTable({ designs }: RolloutStudy, hours: number): string {
  const table = figureTable(["design", ...KEYS.map(headOf)], [NAME_WIDTH, ...KEYS.map(() => 12)]);
  const text = (micros: number | undefined) =>
    knownText(micros, (known) => (Number.isFinite(known) ? millisOf(known) : "none"));
  for (const { name, figures } of designs) {
    const cells = KEYS.map((key) => {
      return `${text(figures[key].detectable[hours])}\n${text(figures[key].detectableAdjusted[hours])}`;
    });
    table.push([brokenName(name, NAME_WIDTH), ...cells]);
  }
  return table.toString();
}

function headOf(key: PlannedFigureKey): string {
  return key
    .split(".")
    .map((word) => HEADS[word])
    .join(" ");
}

function duration(hours: number): string {
  if (hours < 1) return `${Math.ceil(60 * hours)} min`;
  return hours < 48 ? `${hours.toFixed(1)} h` : `${(hours / 24).toFixed(1)} days`;
}
