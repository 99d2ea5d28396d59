import type { ProfileSpec } from "./spec.ts";

/**
 * The least added waiting, behind a guard that takes out endpoints far above the mean whatever they hold. Idle equals take
 * turns. Chosen by measurement against every other shipped profile (bench/profiles.ts).
 */
export const DEFAULT_PROFILE: ProfileSpec = {
  filters: [{ plugin: "imbalance", parameters: { factor: 1.5, slack: 6 } }],
  scorers: [{ plugin: "added-latency", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: { tieBreak: "rotate" } },
};
