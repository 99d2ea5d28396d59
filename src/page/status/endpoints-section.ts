import { type DataTable, dataTable, type TableRow } from "../part/data-table.ts";
import { age, compact, count, duration, percent } from "../part/format.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import { meter } from "../part/meter.ts";
import { endpointName } from "./endpoint-name.ts";
import { matching, ordered, type Ranked } from "./endpoint-order.ts";
import type { EndpointCard, KnownEndpoint } from "./overview.ts";
import type { EndpointSort, PageActions, PageState } from "./page-state.ts";
import { section } from "./section.ts";
import { type Severity, troubleOf } from "./trouble.ts";

/** Rows before somebody asks for all of them. */
const ROWS_SHOWN = 12;

type Actions = Pick<PageActions, "filter" | "sort" | "showAllEndpoints" | "toggleEndpoint">;

const FIGURE = "figure";
const COLUMNS: readonly { readonly name: string; readonly style: string; readonly sort?: EndpointSort }[] = [
  { name: "Endpoint", style: "text name", sort: "name" },
  { name: "Trouble", style: "text trouble", sort: "trouble" },
  { name: "Requests/s", style: FIGURE },
  { name: "Failed", style: FIGURE },
  { name: "TTFT", style: FIGURE },
  { name: "Running", style: FIGURE, sort: "load" },
  { name: "Waiting", style: FIGURE, sort: "waiting" },
  { name: "KV in use", style: FIGURE, sort: "kv" },
  { name: "Cached / expected", style: FIGURE, sort: "hits" },
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
    element(
      "p",
      {},
      "Requests, failed attempts, TTFT (median) and cached prompt tokens: of the last minute, through this gateway.",
    ),
    controls(state, found.length, shown.length, actions),
    element(
      "div",
      { class: "card table" },
      dataTable(tableOf(state, shown, actions, state.overview?.traffic.lastMinute.seconds ?? 1)),
    ),
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

function tableOf(state: PageState, shown: readonly Ranked[], actions: Actions, seconds: number): DataTable {
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
  const rows = shown.map((one) => rowOf(one, state.openEndpoints.has(one.endpoint.id), actions, seconds));
  return { caption: "Endpoints with their load and their troubles", columns, rows, folds: true };
}

function rowOf({ endpoint, trouble }: Ranked, isOpen: boolean, actions: Actions, seconds: number): TableRow {
  const { id } = endpoint;
  const name = element(
    "button",
    { type: "button", class: "open", "aria-expanded": String(isOpen), onclick: () => actions.toggleEndpoint(id) },
    endpointName(id),
  );
  return {
    key: id,
    style: trouble.severity > 1 ? "troubled" : undefined,
    cells: [
      name,
      signsOf(endpoint, trouble.severity, trouble.signs),
      ...lately(endpoint, seconds),
      ...figures(endpoint),
    ],
    ...(isOpen && { detail: detailOf(endpoint) }),
  } as TableRow;
}

function signsOf({ state }: EndpointCard, severity: Severity, signs: readonly string[]): MarkupContent {
  if (severity === 0) return element("span", { class: "soft" }, state === "ready" ? "none" : state);
  return element("span", { class: severity > 1 ? "bad" : "warn" }, signs.join("; "));
}

function lately({ lastMinute }: EndpointCard, seconds: number): MarkupContent[] {
  if (lastMinute === null) return ["0", "0", "–"];
  const { requests, failedAttempts, ttftMillis } = lastMinute;
  const failed = count(failedAttempts);
  return [
    compact(requests / seconds),
    failedAttempts === 0 ? failed : element("span", { class: "bad" }, failed),
    duration(ttftMillis ?? undefined),
  ];
}

function figures({ known, lastMinute }: EndpointCard): MarkupContent[] {
  if (known === null) return ["–", "–", "–", "–"];
  const { running, waiting, kvUtilization } = known;
  return [
    count(running),
    element("span", { class: (waiting ?? 0) > 0 ? "warn" : undefined }, count(waiting)),
    meter(kvUtilization, percent(kvUtilization, 0)),
    hitsText(lastMinute, known.hitRatio),
  ];
}

/** Expected hits that do not come are worth a look: somebody else fills its cache, or its blocks are cut otherwise. */
const MISSED = 0.1;

function hitsText(lastMinute: EndpointCard["lastMinute"], ofEngine: number | null): MarkupContent {
  const { hitRatio = null, expectedHitRatio = null } = lastMinute ?? {};
  if (hitRatio === null || expectedHitRatio === null) return `${percent(ofEngine ?? NaN, 0)} / –`;
  const text = `${percent(hitRatio, 0).replace(" %", "")} / ${percent(expectedHitRatio, 0)}`;
  return expectedHitRatio - hitRatio > MISSED ? element("span", { class: "warn" }, text) : text;
}

function detailOf(card: EndpointCard): Markup {
  const { id, state, models, modelsMore, known, scrapeError } = card;
  const { todo } = troubleOf(card);
  const more = modelsMore > 0 ? [`and ${modelsMore} more`] : [];
  const facts: (readonly [string, string])[] = [
    ...(todo === "" ? [] : [["What to do", todo] as const]),
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
    ["Breaker", known.breaker],
    ["In flight", count(known.inFlight)],
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
