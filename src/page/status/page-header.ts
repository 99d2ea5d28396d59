import { age, clock } from "../part/format.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import type { PageActions, PageState } from "./page-state.ts";

const PARTS = [
  ["endpoints", "Endpoints"],
  ["traffic", "Traffic"],
  ["rollout", "Rollout"],
  ["shadow", "Predictions"],
  ["decisions", "Decisions"],
  ["policy", "Policy"],
] as const;

/** What the page is of, whether it is live, and the ways into it. */
export function pageHeader(state: PageState): Markup {
  const { overview } = state;
  return element(
    "header",
    {},
    element("a", { class: "skip", href: "#main" }, "Skip to the content"),
    element("h1", {}, "gnomon", overview !== undefined && element("small", {}, overview.gateway.version)),
    element("span", { id: "state", role: "status", class: stateLevel(state) }, stateText(state)),
    overview !== undefined &&
      element(
        "nav",
        { "aria-label": "Parts of the page" },
        PARTS.map(([id, name]) => element("a", { href: `#${id}` }, name)),
        element("a", { href: "/metrics" }, "Metrics"),
      ),
  );
}

/** What stands in the way, large and first. */
export function notices(state: PageState, actions: Pick<PageActions, "sendToken">): MarkupContent[] {
  const { connection, overview, now } = state;
  const found: MarkupContent[] = [];
  if (connection.kind === "locked") found.push(tokenForm(connection.message, actions));
  if (connection.kind === "lost") {
    const { since, message } = connection;
    const known = overview === undefined ? "" : " What follows is what was known then.";
    const when = since === undefined ? "" : ` since ${clock(since)} UTC, for ${age(now - since)}`;
    found.push(element("p", { class: "notice bad" }, `No news from the gateway${when}: ${message}.${known}`));
  }
  for (const wait of overview?.gateway.waitsFor ?? []) {
    found.push(element("p", { class: "notice warn" }, `Not ready, waits for ${wait}.`));
  }
  return found;
}

/** Changes only as the state does, so that it is read out then and not with every answer. */
function stateText({ connection }: PageState): string {
  switch (connection.kind) {
    case "loading":
      return "loading";
    case "live":
      return "live";
    case "locked":
      return "a token is needed";
    case "lost":
      return connection.since === undefined ? "no news" : `no news since ${clock(connection.since)} UTC`;
  }
}

function stateLevel({ connection }: PageState): string {
  return connection.kind === "live" ? "pill good" : connection.kind === "loading" ? "pill plain" : "pill bad";
}

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: { readonly elements: { namedItem(name: string): { value: string } | null } };
}

function tokenForm(message: string, { sendToken }: Pick<PageActions, "sendToken">): Markup {
  const onsubmit = (event: Submitted): void => {
    event.preventDefault();
    const input = event.currentTarget.elements.namedItem("token");
    if (input === null) return;
    sendToken(input.value);
    input.value = "";
  };
  return element(
    "form",
    { class: "notice", onsubmit },
    element("p", {}, message),
    element("label", { for: "token" }, "Status token or admin token"),
    element("input", { id: "token", name: "token", type: "password", autocomplete: "off" }),
    element("button", {}, "Show"),
  );
}
