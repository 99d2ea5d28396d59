import Table from "cli-table3";
import { UNPREDICTED } from "#core/rollout/verdict-line.ts";
import { guardrailRule } from "#live/admin/guardrail-rule.ts";
import type { DifferenceView, GuardrailView, RolloutView } from "#live/admin/rollout-view.ts";

/** One line: where it is, its arms with their shares and counts, and how far it is from being taken back. */
export function rolloutLine(rollout: RolloutView): string {
  const { name, model, phase, arms, window, canary, guardrails, verdict, by } = rollout;
  const of = model === "" ? "" : ` (${model})`;
  const place = window === null ? "" : `, window ${window.number}${window.arm === null ? "" : ` on ${window.arm}`}`;
  const step = canary === null ? "" : `, step ${canary.step + 1} of ${canary.stepPercents.length}`;
  const counts = arms.map((arm) => `${arm.name} ${round(arm.sharePercent)} % (${arm.total.requests})`).join(", ");
  const used = Math.max(-1, ...guardrails.map(usedOf));
  const guarded = used < 0 || phase !== "running" ? "" : `; nearest guardrail at ${round(100 * used)} %`;
  const who = phase === "running" || phase === "planned" || by === "" ? "" : ` (${by})`;
  return `${name}${of}: ${verdict.text}${who}. ${phase}${place}${step}; ${counts}${guarded}`;
}

/** Everything about one rollout, for a terminal. */
export function rolloutTable(rollout: RolloutView): string {
  return [
    rolloutLine(rollout),
    ...(rollout.scope === "" ? [] : [`Judged: ${rollout.scope}`]),
    tableOf(ARM_HEAD, armRows(rollout)),
    "Differences from the control, milliseconds, with intervals that are valid at any time of looking:",
    tableOf(DIFFERENCE_HEAD, named(differenceRows(rollout))),
    "Guardrails, beyond which it is taken back at once:",
    tableOf(GUARDRAIL_HEAD, named(guardrailRows(rollout))),
    ...predictionLines(rollout),
    ...rollout.steps.map(({ at, step, arm, by, reason }) => `${at} ${step} ${arm} by ${by}: ${reason}`),
  ].join("\n");
}

/** What it has found, as Markdown. */
export function rolloutReport(rollout: RolloutView): string {
  const { name, model, phase, since, reason, by, design, level, verdict } = rollout;
  const washout =
    design.washoutMillis === null ? "" : `, of which the first ${design.washoutMillis / 1000} s do not count`;
  return [
    `# Rollout ${name}`,
    "",
    `**${verdict.text}**`,
    "",
    `${phase} since ${since}${by === "" ? "" : `, by ${by}`}: ${reason}`,
    "",
    `Design: ${design.kind}${design.by === null ? "" : ` by ${design.by}`}, windows of ${design.windowMillis / 1000} s${washout}; ${model === "" ? "all models" : `model ${model}`}.`,
    "",
    "## Arms",
    "",
    markdown(ARM_HEAD, armRows(rollout)),
    "",
    "## Differences from the control",
    "",
    `Milliseconds. Of rollouts without a difference, at most ${100 * level} % have an interval that leaves out 0 at any look.`,
    "",
    markdown(DIFFERENCE_HEAD, differenceRows(rollout)),
    "",
    "## Guardrails",
    "",
    markdown(GUARDRAIL_HEAD, guardrailRows(rollout)),
    "",
    ...predictionLines(rollout).map((line) => `- ${line}`),
    "",
    "## Steps",
    "",
    ...rollout.steps.map(
      ({ at, step, arm, by: who, reason: why }) => `- ${at} ${step}${arm === "" ? "" : ` ${arm}`} by ${who}: ${why}`,
    ),
  ].join("\n");
}

const ARM_HEAD = [
  "arm",
  "profile",
  "share",
  "requests",
  "failed",
  "refused",
  "hit ratio",
  "goodput",
  "imbalance",
  "TTFT ms p50/p90/p99",
  "TPOT ms mean",
  "E2E ms mean/p99",
];
const DIFFERENCE_HEAD = ["arm", "figure", "of", "mean", "low", "high", "variance left", "found"];
const GUARDRAIL_HEAD = ["arm", "figure", "may be at most", "value", "at least", "limit now", "samples", "state"];

function armRows({ arms }: RolloutView): string[][] {
  return arms.map(({ name, profile, sharePercent, total, isControl }) => {
    const { ttft, tpot, e2e } = total.times;
    return [
      isControl && name !== "control" ? `${name} (control)` : name,
      profile === "" ? "as the policy has it" : profile,
      `${round(sharePercent)} %`,
      String(total.requests),
      String(total.failed),
      String(total.refused),
      number(total.hitRatio, 3),
      number(total.goodput, 3),
      number(total.imbalance, 2),
      [ttft.p50Millis, ttft.p90Millis, ttft.p99Millis].map((one) => number(one, 0)).join("/"),
      number(tpot.meanMillis, 1),
      [e2e.meanMillis, e2e.p99Millis].map((one) => number(one, 0)).join("/"),
    ];
  });
}

/** Means and 99th percentiles; the others are in the JSON. */
function differenceRows({ differences }: RolloutView): string[][] {
  return differences
    .filter(({ figure }) => figure === "mean" || figure === "p99")
    .map((one) => [
      one.arm,
      `${one.metric}.${one.figure}`,
      String(one.count),
      number(one.meanMillis, 1),
      number(one.lowMillis, 1),
      number(one.highMillis, 1),
      one.varianceLeft === null || one.varianceLeft === 1 ? "" : `${number(100 * one.varianceLeft, 0)} %`,
      verdictOf(one),
    ]);
}

function verdictOf({ isSignificant, meanMillis }: DifferenceView): string {
  if (meanMillis === null) return "nothing yet";
  if (!isSignificant) return "no difference yet";
  return meanMillis < 0 ? "better" : "worse";
}

function guardrailRows({ guardrails }: RolloutView): string[][] {
  return guardrails.map((one) => {
    const text = (value: number | null) =>
      value === null ? "-" : one.unit === "share" ? `${number(100 * value, 1)} %` : `${number(value, 0)} ms`;
    return [
      one.arm,
      one.figure,
      guardrailRule(one),
      text(one.value),
      text(one.low),
      text(one.limit),
      `${one.samples} of ${one.samplesMin}`,
      one.crossed ? "crossed" : one.samples < one.samplesMin || one.limit === null ? "too little known" : "holds",
    ];
  });
}

function usedOf({ value, limit, samples, samplesMin }: GuardrailView): number {
  return value === null || limit === null || limit === 0 || samples < samplesMin ? -1 : value / limit;
}

function predictionLines({ predictions, adjustment, design }: RolloutView): string[] {
  const lines = predictions.map(
    ({ arm, metric, figure, lowMillis, highMillis, verdict }) =>
      `${arm} ${metric}.${figure} was predicted ${number(lowMillis, 1)} to ${number(highMillis, 1)} ms from the control: ${VERDICTS[verdict]}`,
  );
  if (adjustment === null && design.kind === "switchback")
    return [...lines, `${UNPREDICTED} (rollout.predict, adjusted)`];
  if (adjustment === null) return lines;
  const { predicted, unpredicted, waiting } = adjustment;
  const counts = `${predicted} of ${predicted + unpredicted} requests, and ${waiting} wait for it`;
  return [...lines, `adjusted by what is predicted if the control had routed all: ${counts}`];
}

const VERDICTS = {
  open: "not decided yet",
  agrees: "what was measured agrees",
  contradicted: "what was measured contradicts it",
} as const;

/** Rows of one arm, one below the other, name it once. */
function named(rows: readonly string[][]): readonly string[][] {
  return rows.map((row, i) => (row[0] === rows[i - 1]?.[0] ? ["", ...row.slice(1)] : row));
}

function tableOf(head: readonly string[], rows: readonly string[][]): string {
  const table = new Table({ head: [...head], style: { head: [], border: [] } });
  for (const row of rows) table.push(row);
  return table.toString();
}

function markdown(head: readonly string[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function number(value: number | null, digits: number): string {
  return value === null ? "-" : value.toFixed(digits);
}

function round(value: number): string {
  return String(Math.round(10 * value) / 10);
}
