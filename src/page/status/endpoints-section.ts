import { type DataTable, dataTable, type TableRow } from "../part/data-table.ts";
import { age, compact, count, duration, percent } from "../part/format.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import { meter } from "../part/meter.ts";
import { pill } from "../part/pill.ts";
import { endpointName } from "./endpoint-name.ts";
import { matching, ordered, type Ranked } from "./endpoint-order.ts";
import type { EndpointCard, KnownEndpoint } from "./overview.ts";
import type { EndpointSort, PageActions, PageState } from "./page-state.ts";
import { section } from "./section.ts";
import type { Severity } from "./trouble.ts";

/** Rows before somebody asks for all of them. */
const ROWS_SHOWN = 12;

type Actions = Pick<PageActions, "filter" | "sort" | "showAllEndpoints" | "toggleEndpoint">;

const COLUMNS: readonly { readonly name: string; readonly style: string; readonly sort?: EndpointSort }[] = [
  { name: "Endpoint", style: "text name", sort: "name" },
  { name: "Trouble", style: "text trouble", sort: "trouble" },
  { name: "Running", style: "", sort: "load" },
  { name: "Waiting", style: "", sort: "waiting" },
  { name: "In flight", style: "" },
  { name: "KV in use", style: "", sort: "kv" },
  { name: "Hit ratio", style: "", sort: "hits" },
  { name: "Breaker", style: "text" },
];

export function endpointsSection(state: PageState, actions: Actions): Markup {
  const all = ordered(state.overview?.endpoints ?? [], state.sort);
  const found = matching(all, state.filter);
  const shown = state.allEndpoints ? found : found.slice(0, rowsShown(found));
  const troubled = all.filter(({ trouble }) => trouble.severity > 0).length;
  return section(
    "endpoints",
    "Endpoints",
    element("p", { class: "lead" }, fleetText(all.length, troubled)),
    controls(state, found.length, shown.length, actions),
    element("div", { class: "card table" }, dataTable(tableOf(state, shown, actions))),
  );
}

/** All of those in serious trouble, and as many more as have room. */
function rowsShown(found: readonly Ranked[]): number {
  return Math.max(ROWS_SHOWN, found.findLastIndex(({ trouble }) => trouble.severity > 1) + 1);
}

function fleetText(all: number, troubled: number): MarkupContent {
  if (all === 0) return element("span", { class: "bad" }, "No endpoint is known.");
  if (troubled === 0) return element("span", { class: "good" }, `All ${all} are well.`);
  return element("span", { class: "bad" }, `${troubled} of ${all} in trouble, listed first.`);
}

function controls(state: PageState, found: number, shown: number, actions: Actions): Markup {
  const hidden = found - shown;
  const all = state.allEndpoints;
  return element(
    "div",
    { class: "controls" },
    element("label", { for: "filter" }, "Filter"),
    element("input", {
      id: "filter",
      type: "search",
      placeholder: "name, model or trouble",
      autocomplete: "off",
      value: state.filter,
      oninput: (event: { readonly currentTarget: { readonly value: string } }) =>
        actions.filter(event.currentTarget.value),
    }),
    sortChoice(state.sort, actions),
    element("span", { class: "soft" }, `${shown} of ${count(state.overview?.endpoints.length ?? 0)} shown`),
    (hidden > 0 || all) &&
      element(
        "button",
        { type: "button", onclick: () => actions.showAllEndpoints(!all) },
        all ? "Show fewer" : `Show ${hidden} more`,
      ),
  );
}

/** The same as the heads of the columns, which have no room on a narrow screen. */
function sortChoice(sort: EndpointSort, actions: Actions): Markup {
  const choices = COLUMNS.flatMap((column) => (column.sort === undefined ? [] : [[column.sort, column.name] as const]));
  return element(
    "label",
    { class: "narrow" },
    "Order by",
    element(
      "select",
      {
        onchange: (event: { readonly currentTarget: { readonly value: string } }) =>
          actions.sort(event.currentTarget.value as EndpointSort),
      },
      choices.map(([value, name]) => element("option", { value, selected: value === sort }, name)),
    ),
  );
}

function tableOf(state: PageState, shown: readonly Ranked[], actions: Actions): DataTable {
  const columns = COLUMNS.map(({ name, style, sort }) => ({
    name,
    style,
    ...(sort && {
      sort: {
        isActive: state.sort === sort,
        direction: sort === "name" ? ("ascending" as const) : ("descending" as const),
        by: () => actions.sort(sort),
      },
    }),
  }));
  const rows = shown.map((one) => rowOf(one, state.openEndpoints.has(one.endpoint.id), actions));
  return { caption: "Endpoints with their load and their troubles", columns, rows, folds: true };
}

function rowOf({ endpoint, trouble }: Ranked, isOpen: boolean, actions: Actions): TableRow {
  const { id, known } = endpoint;
  const name = element(
    "button",
    { type: "button", class: "open", "aria-expanded": String(isOpen), onclick: () => actions.toggleEndpoint(id) },
    endpointName(id),
  );
  return {
    key: id,
    style: trouble.severity > 1 ? "troubled" : undefined,
    cells: [name, signsOf(endpoint, trouble.severity, trouble.signs), ...figures(known)],
    ...(isOpen && { detail: detailOf(endpoint) }),
  } as TableRow;
}

function signsOf({ state }: EndpointCard, severity: Severity, signs: readonly string[]): MarkupContent {
  if (severity === 0) return element("span", { class: "soft" }, state === "ready" ? "none" : state);
  return element("span", { class: severity > 1 ? "bad" : "warn" }, signs.join("; "));
}

function figures(known: KnownEndpoint | null): MarkupContent[] {
  if (known === null) return ["–", "–", "–", "–", "–", "–"];
  const { running, waiting, inFlight, kvUtilization, hitRatio, breaker } = known;
  return [
    count(running),
    element("span", { class: (waiting ?? 0) > 0 ? "warn" : undefined }, count(waiting)),
    count(inFlight),
    meter(kvUtilization, percent(kvUtilization, 0)),
    percent(hitRatio ?? NaN, 0),
    breaker === "closed"
      ? element("span", { class: "soft" }, breaker)
      : pill(breaker === "open" ? "bad" : "warn", breaker),
  ];
}

function detailOf({ id, state, models, modelsMore, known, scrapeError }: EndpointCard): Markup {
  const more = modelsMore > 0 ? [`and ${modelsMore} more`] : [];
  const facts: (readonly [string, string])[] = [
    ["Address", id],
    ["State", state],
    ["Models", [...models, ...more].join(", ") || "none known"],
    ...(known === null ? [] : factsOf(known)),
    ["Last scrape error", scrapeError === "" ? "none" : scrapeError],
  ];
  return element(
    "dl",
    { class: "facts" },
    facts.flatMap(([name, value]) => [element("div", {}, element("dt", {}, name), element("dd", {}, value))]),
  );
}

function factsOf(known: KnownEndpoint): (readonly [string, string])[] {
  const capacity = known.kvCapacityTokens;
  return [
    ["Load, others' requests included", count(known.load)],
    ["Prompt tokens queued", compact(known.prefillTokensQueued)],
    ["Tokens being decoded", compact(known.decodeTokens)],
    ["KV capacity", capacity === null ? "unknown" : `${compact(capacity)} tokens`],
    ["Blocks in the prefix index", compact(known.indexBlocks)],
    ["TTFT of late", duration(known.ttftMillis)],
    ["TPOT of late", duration(known.tpotMillis)],
    ["Signals", `${known.freshness}, ${age(known.ageMillis)} old`],
  ];
}
