import type { AutopilotCard } from "#page/status/autopilot-overview.ts";
import type { AutopilotView } from "../admin/autopilot-desk.ts";

const PROPOSALS_SHOWN = 4;

/** What the page shows of the autopilot. */
export function autopilotCard({ start, latest, searches, proposals }: AutopilotView): AutopilotCard {
  return {
    startsAlone: start === "alone",
    latest,
    searches: Object.values(searches).reduce((sum, count) => sum + count, 0),
    proposals: proposals.slice(0, PROPOSALS_SHOWN).map((one) => ({
      name: one.name,
      at: Date.parse(one.at),
      state: one.state,
      by: one.by,
      detail: one.detail,
      inForce: one.inForce,
      objective: one.objective,
      gain: one.gain,
      gainLow: one.gainLow,
      gainHigh: one.gainHigh,
    })),
  };
}
