import type { Registry } from "prom-client";
import { type AutopilotDesk, PROPOSAL_STATES } from "../admin/autopilot-desk.ts";
import { NO_LABELS, registerFamily } from "./metric-family.ts";

export interface AutopilotSource {
  /** Undefined where no better policy is searched. */
  readonly autopilot?: Pick<AutopilotDesk, "view"> | undefined;
}

/** Searches and proposals in numbers; none where there is no autopilot. */
export function registerAutopilot(registry: Registry, { autopilot: desk }: AutopilotSource): void {
  registerFamily(registry, {
    name: "gnomon_autopilot_searches_total",
    help: "Searches for a better policy, by outcome.",
    type: "counter",
    rows: () =>
      Object.entries(desk?.view().searches ?? {}).map(([outcome, value]) => ({
        value,
        sharedLabels: NO_LABELS,
        labels: { outcome },
      })),
  });
  registerFamily(registry, {
    name: "gnomon_autopilot_proposals",
    help: "Proposals kept, by state.",
    type: "gauge",
    rows: () => {
      const proposals = desk?.view().proposals;
      if (proposals === undefined) return [];
      return PROPOSAL_STATES.map((state) => ({
        value: proposals.filter((one) => one.state === state).length,
        sharedLabels: NO_LABELS,
        labels: { state },
      }));
    },
  });
  registerFamily(registry, {
    name: "gnomon_autopilot_rollouts_started_total",
    help: "Rollouts started from proposals.",
    type: "counter",
    rows: () =>
      desk === undefined ? [] : [{ value: desk.view().started, sharedLabels: NO_LABELS, labels: NO_LABELS }],
  });
}
