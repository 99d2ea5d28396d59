import { figure } from "../part/figure.ts";
import { count, duration, percent } from "../part/format.ts";
import { INTERVAL_LEFT, INTERVAL_RIGHT, type IntervalRow, intervalChart } from "../part/interval-chart.ts";
import { element, type Markup } from "../part/markup.ts";
import { linearScale } from "../part/scale.ts";
import type { ShadowCandidateCard, ShadowCard, ShadowEvaluationCard } from "./overview.ts";
import { section } from "./section.ts";

const METRICS = [
  ["ttft", "TTFT"],
  ["tpot", "TPOT"],
  ["e2e", "E2E"],
] as const;
const MILLIS = 1_000;
/** Beside the outermost value, as a part of what lies between, and at least so much of the largest. */
const ROOM = 0.08;
const ROOM_MIN = 0.01;

/** What the shadow predicts for each profile beside what is measured. */
export function shadowSection(shadow: ShadowCard | null): Markup {
  if (shadow === null) {
    return section(
      "shadow",
      "Predictions",
      element("p", { class: "card" }, "No shadow runs here; shadow.enabled starts one."),
    );
  }
  const { evaluation } = shadow;
  return section(
    "shadow",
    "Predictions",
    element("p", {}, stateText(shadow)),
    evaluation === null
      ? element("p", { class: "card" }, "No evaluation yet: it needs some minutes of traffic.")
      : evaluationOf(evaluation),
  );
}

function stateText({ state, detail, decisions, differences, engine }: ShadowCard): string {
  const of = engine === "fitted" ? "fitted to this traffic" : "as configured";
  const replayed = `${count(decisions)} decisions replayed, ${differences === 0 ? "none" : count(differences)} differ`;
  return `The shadow is ${state}${detail === "" ? "" : ` (${detail})`}. ${replayed}. Its engine model is ${of}.`;
}

function evaluationOf(evaluation: ShadowEvaluationCard): Markup {
  const { inForce, requests, candidates, replicas, withoutIntervals } = evaluation;
  const over = `Means over the last ${count(requests)} requests, as each profile would have had them.`;
  const dashed = `Dashed: measured under ${inForce}.`;
  const thin = replicas > 0 ? "Lines: 90 % prediction intervals." : `No intervals: ${withoutIntervals}.`;
  return element(
    "div",
    {},
    element("p", {}, `${over} ${dashed} ${thin}`),
    element(
      "div",
      { class: "cards" },
      METRICS.map(([metric, name]) => chart(evaluation, candidates, metric, name)),
    ),
  );
}

function chart(
  { measuredSeconds, inForce }: ShadowEvaluationCard,
  candidates: readonly ShadowCandidateCard[],
  metric: string,
  name: string,
): Markup | undefined {
  const measured = measuredSeconds[metric];
  const rows = candidates.flatMap((one, i) => rowOf(one, metric, one.name === inForce, `s${i % 8}`));
  if (rows.length === 0) return undefined;
  const ends = rows.flatMap(({ value, outer }) => [outer?.low ?? value, outer?.high ?? value]);
  if (measured !== undefined) ends.push(measured * MILLIS);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = Math.max(ROOM * (high - low), ROOM_MIN * high);
  const scale = linearScale(Math.max(0, low - room), high + room, INTERVAL_LEFT, INTERVAL_RIGHT, 4);
  const note = measured === undefined ? "" : `measured ${duration(measured * MILLIS)}`;
  return figure(
    name,
    measured !== undefined && element("span", { class: "legend" }, element("b", {}, note)),
    intervalChart({
      label: `${name} predicted by profile${measured === undefined ? "" : `, ${note}`}`,
      scale,
      tickText: (millis) => duration(millis).replace(/\.0+ /, " "),
      rows,
      ...(measured !== undefined && { mark: { at: measured * MILLIS, note } }),
    }),
  );
}

function rowOf(
  { name, predicted, hitRatio }: ShadowCandidateCard,
  metric: string,
  isInForce: boolean,
  style: string,
): IntervalRow[] {
  const one = predicted[metric];
  if (one === undefined) return [];
  const { low, high, mean } = one;
  const has = low !== undefined && high !== undefined;
  const range = has ? ` [${duration(low * MILLIS)}, ${duration(high * MILLIS)}]` : "";
  return [
    {
      name: `${name}${isInForce ? ", in force" : one.exceedsNoise === false ? ", no clear difference" : ""}`,
      text: `${duration(mean * MILLIS)}${range}`,
      style,
      value: mean * MILLIS,
      ...(has && {
        outer: { low: low * MILLIS, high: high * MILLIS, note: `90 % of what may come; ${percent(hitRatio)} cached` },
      }),
    },
  ];
}
