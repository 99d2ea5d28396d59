import { dataTable, type TableRow } from "../part/data-table.ts";
import { capitalised, age, count, dayAndClock, duration, percent } from "../part/format.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import { meter } from "../part/meter.ts";
import { pill } from "../part/pill.ts";
import type { RolloutCard, RolloutPhase } from "./overview.ts";
import type { TimeFigures } from "./time-figures.ts";
import type { PageActions, PageState } from "./page-state.ts";
import { rolloutStart } from "./rollout-start.ts";
import { rolloutOrders } from "./rollout-orders.ts";
import type { RolloutArm } from "./rollout-arm.ts";
import { rolloutChart } from "./rollout-chart.ts";
import { section } from "./section.ts";
import { windowChart } from "./window-chart.ts";

const LEVELS: Readonly<Record<RolloutPhase, Parameters<typeof pill>[0]>> = {
  planned: "plain",
  running: "good",
  paused: "warn",
  promoted: "good",
  "rolled-back": "bad",
};

export function rolloutSection(
  rollouts: readonly RolloutCard[],
  state: Pick<PageState, "order" | "overview">,
  actions: PageActions,
): Markup {
  const content =
    rollouts.length === 0
      ? [element("p", { class: "card" }, "No rollout.")]
      : rollouts.map((one) => rolloutOf(one, state, actions));
  const isFree = rollouts.every(({ phase }) => phase === "promoted" || phase === "rolled-back");
  return section("rollout", "Rollout", ...content, isFree ? rolloutStart(state, actions) : undefined);
}

function rolloutOf(rollout: RolloutCard, state: Pick<PageState, "order" | "overview">, actions: PageActions): Markup {
  const at = state.overview?.at ?? rollout.at;
  const { name, model, phase, design, reason, intervals, windows, guardrails, steps } = rollout;
  return element(
    "article",
    { key: name, class: "rollout", "aria-label": `Rollout ${name}` },
    element("h3", {}, name, " ", pill(LEVELS[phase], phase.replace("-", " "))),
    element("p", { class: "lead" }, `${design}${model === "" ? "" : ` Of model ${model}.`}${windowText(rollout, at)}`),
    element("p", { class: "verdict" }, element("b", {}, verdictText(rollout))),
    healthLine(rollout),
    doneMeter(rollout),
    rolloutOrders(rollout, state, actions),
    reason !== "" && element("p", {}, `Last step, ${dayAndClock(rollout.at)} UTC: ${reason}.`),
    element("div", { class: "card table" }, armsTable(rollout)),
    intervals.length > 0 &&
      element(
        "p",
        {},
        "Differences of the means from the control's, with confidence intervals that are valid at any time of looking; below 0 is faster.",
      ),
    element("div", { class: "cards small" }, intervals.map(rolloutChart)),
    element("p", {}, "Each arm by itself, window by window: its mean, shaded from its p50 to its p90."),
    element("div", { class: "cards small" }, windows.map(windowChart)),
    element(
      "div",
      { class: "cards" },
      element(
        "div",
        { class: "card" },
        element("h4", {}, "Guardrails"),
        element("div", { class: "table" }, guardrailTable(guardrails)),
      ),
      element("div", { class: "card" }, element("h4", {}, "Steps"), stepList(steps)),
    ),
  );
}

/** Whether what is compared can be trusted at all. */
function healthLine({ phase, health }: RolloutCard): Markup | undefined {
  if (phase !== "running" && phase !== "paused") return undefined;
  if (health.length > 0) return element("p", { class: "health bad" }, `Health: ${health.join("; ")}.`);
  return element("p", { class: "health" }, "Health: good. Arms answer, and have what was drawn to them.");
}

/** How much of what is planned was compared. */
function doneMeter({ phase, verdict: { done, planned, unit }, scope }: RolloutCard): Markup | undefined {
  if (phase !== "running" && phase !== "paused") return undefined;
  const text = `${count(Math.min(done, planned))} of ${count(planned)} ${unit}`;
  return element(
    "p",
    { class: "done" },
    element("progress", { max: Math.max(1, planned), value: Math.min(done, planned), "aria-label": text }),
    ` ${text}${scope === "" ? "" : `; judged by ${scope}`}`,
  );
}

function verdictText({ verdict: { text } }: RolloutCard): string {
  return `${capitalised(text)}.`;
}

function windowText({ window, cooldownEndsAt }: RolloutCard, at: number): string {
  if (cooldownEndsAt !== null && cooldownEndsAt > at) {
    return ` No other one of this model starts for ${age(cooldownEndsAt - at)}.`;
  }
  if (window === null) return "";
  const arm = window.arm === "" ? "" : `, all on ${window.arm}`;
  const washout = window.isWashout ? ", not counted yet" : "";
  return ` Window ${window.number}${arm}${washout}, ends in ${age(window.endsAt - at)}.`;
}

function armsTable({ arms, name }: RolloutCard): Markup {
  return dataTable({
    caption: `Arms of ${name}`,
    columns: [
      { name: "Arm", style: "text" },
      { name: "Profile", style: "text wrap" },
      { name: "Requests" },
      { name: "Failed" },
      { name: "Refused" },
      { name: "TTFT mean, p99" },
      { name: "TPOT mean, p99" },
      { name: "E2E mean, p99" },
      { name: "Hit ratio" },
      { name: "Goodput" },
      { name: "Imbalance" },
    ],
    rows: arms.map(armRow),
    folds: true,
  });
}

function armRow(arm: RolloutArm, place: number): TableRow {
  const of = (part: number): MarkupContent => element("span", { class: part > 0 ? "bad" : undefined }, count(part));
  const pair = (times: TimeFigures | null) => `${duration(times?.mean)}, ${duration(times?.p99)}`;
  const share = arm.share === "" ? "" : `, ${arm.share}`;
  return {
    key: arm.name,
    cells: [
      element(
        "span",
        {},
        element("i", { class: `dot s${place}` }),
        place === 0 && arm.name !== "control" ? `${arm.name} (control)` : arm.name,
      ),
      `${arm.profile}${share}`,
      count(arm.requests),
      of(arm.failed),
      of(arm.refused),
      pair(arm.ttft),
      pair(arm.tpot),
      pair(arm.e2e),
      percent(arm.hitRatio ?? NaN),
      percent(arm.goodput ?? NaN),
      arm.imbalance === null ? "–" : arm.imbalance.toFixed(2),
    ],
  };
}

function guardrailTable(guardrails: RolloutCard["guardrails"]): Markup {
  if (guardrails.length === 0) return element("p", {}, "None.");
  return dataTable({
    caption: "Guardrails: limits beyond which the rollout is taken back at once",
    columns: [{ name: "Figure", style: "text wrap" }, { name: "Limit", style: "text wrap" }, { name: "Now" }],
    rows: guardrails.map(({ figure, arm, limit, used, value }) => ({
      key: `${figure} ${arm} ${limit}`,
      cells: [`${figure}, ${arm}`, limit, used === null ? "too few samples" : meter(used, value)],
    })),
    folds: true,
  });
}

function stepList(steps: RolloutCard["steps"]): Markup {
  if (steps.length === 0) return element("p", {}, "None yet.");
  return element(
    "ol",
    { class: "steps" },
    steps
      .toReversed()
      .map(({ at, step, by, reason }) =>
        element(
          "li",
          {},
          element("b", {}, step),
          ` by ${by === "" ? "gnomon" : by}`,
          element("span", {}, dayAndClock(at), " UTC"),
          reason !== "" && element("span", {}, reason),
        ),
      ),
  );
}
