import { element, type Markup } from "../part/markup.ts";
import { autopilotSection } from "./autopilot-section.ts";
import { decisionsSection } from "./decisions-section.ts";
import { endpointsSection } from "./endpoints-section.ts";
import { headline } from "./headline.ts";
import { notices, pageHeader } from "./page-header.ts";
import type { PageActions, PageState } from "./page-state.ts";
import { policySection } from "./policy-section.ts";
import { rolloutSection } from "./rollout-section.ts";
import { shadowSection } from "./shadow-section.ts";
import { trafficSection } from "./traffic-section.ts";
import { whySection } from "./why-section.ts";
import { healthLine } from "./health-line.ts";

/** The whole page: a function of its state. */
export function app(state: PageState, actions: PageActions): Markup {
  const { overview, connection } = state;
  const shown =
    overview === undefined
      ? []
      : [
          healthLine(overview),
          headline(overview),
          endpointsSection(state, actions),
          trafficSection(state, overview.traffic, actions),
          autopilotSection(overview.autopilot),
          rolloutSection(overview.rollouts, state, actions),
          shadowSection(overview.shadow),
          whySection(overview.shadow),
          decisionsSection(state, actions),
          policySection(overview.policy),
        ];
  return element(
    "div",
    { class: connection.kind === "live" ? "page" : "page old" },
    pageHeader(state),
    element("main", { id: "main", tabindex: -1 }, notices(state, actions), shown),
  );
}
