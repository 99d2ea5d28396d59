import { dataTable, type TableRow } from "../part/data-table.ts";
import { clock, compact, count } from "../part/format.ts";
import { element, type Markup } from "../part/markup.ts";
import { scoreTable } from "./score-table.ts";
import { endpointName } from "./endpoint-name.ts";
import type { DecisionDetail, DecisionLine } from "./overview.ts";
import type { PageActions, PageState } from "./page-state.ts";
import { section } from "./section.ts";

type Actions = Pick<PageActions, "toggleDecision" | "showAllDecisions" | "hold">;

const NOWHERE = {
  queued: element("span", { class: "warn" }, "waits"),
  rejected: element("span", { class: "bad" }, "refused"),
};
/** Rows before somebody asks for all that are kept. */
const ROWS_SHOWN = 10;

export function decisionsSection(state: PageState, actions: Actions): Markup {
  const { decisions, openDecisions, held, allDecisions } = state;
  const rows = decisions
    .slice(0, allDecisions ? undefined : ROWS_SHOWN)
    .map((one) => rowOf(one, openDecisions.get(one.sequence), actions));
  const table = dataTable({
    caption: "Latest decisions, newest first",
    columns: [
      { name: "Time (UTC)", style: "text" },
      { name: "Endpoint", style: "text name" },
      { name: "Why", style: "text wrap why" },
      { name: "Prompt tokens" },
      { name: "Cached there" },
      { name: "Model", style: "text wrap" },
      { name: "Profile", style: "text wrap" },
    ],
    rows,
    folds: true,
  });
  return section(
    "decisions",
    "Decisions",
    element(
      "p",
      {},
      "A sample of each second, in which refusals, waits and retries come first. Open one for the scores of all candidates.",
    ),
    element(
      "div",
      { class: "controls" },
      element(
        "button",
        { type: "button", "aria-pressed": String(held), onclick: () => actions.hold(!held) },
        held ? "Held: show new ones" : "Hold",
      ),
      decisions.length > ROWS_SHOWN &&
        element(
          "button",
          { type: "button", onclick: () => actions.showAllDecisions(!allDecisions) },
          allDecisions ? "Show fewer" : `Show ${decisions.length - ROWS_SHOWN} more`,
        ),
    ),
    decisions.length === 0
      ? element("p", { class: "card" }, "No request has been routed yet.")
      : element("div", { class: "card table" }, table),
  );
}

function rowOf(line: DecisionLine, detail: DecisionDetail | string | undefined, actions: Actions): TableRow {
  const {
    sequence,
    kind,
    endpoint,
    arm,
    model,
    attempt,
    promptTokens,
    hitTokens,
    why,
    came,
    usedLedger,
    profile,
    policyVersion,
  } = line;
  const isOpen = detail !== undefined;
  const time = element(
    "button",
    { type: "button", class: "open", "aria-expanded": String(isOpen), onclick: () => actions.toggleDecision(sequence) },
    clock(line.at),
  );
  const where = endpoint === null ? NOWHERE[kind === "queued" ? "queued" : "rejected"] : endpointName(endpoint);
  return {
    key: String(sequence),
    cells: [
      time,
      where,
      element(
        "span",
        {},
        usedLedger ? `${why} (by the router's own ledger)` : why,
        came !== "" && element("span", { class: "came" }, `Then: ${came}`),
      ),
      promptTokens === null ? "–" : compact(promptTokens),
      hitTokens === null ? "–" : compact(hitTokens),
      model ?? `attempt ${attempt}`,
      `${profile} v${policyVersion}${arm === "" ? "" : `, arm ${arm}`}`,
    ],
    ...(isOpen && { detail: opened(line, detail) }),
  };
}

function opened({ requestId, decisionMicros }: DecisionLine, detail: DecisionDetail | string): Markup {
  return element(
    "div",
    {},
    element("p", {}, `Request ${requestId}, decided in ${count(decisionMicros)} µs.`),
    typeof detail === "string" ? element("p", {}, detail) : scoreTable(detail),
  );
}
