import type { ProfileSpec } from "./spec.ts";

/** llm-d's weights (000 §7) behind a guard against hot endpoints. */
export const DEFAULT_PROFILE: ProfileSpec = {
  filters: [{ plugin: "imbalance", parameters: {} }],
  scorers: [
    { plugin: "prefix-affinity", weight: 3, parameters: {} },
    { plugin: "queue-depth", weight: 2, parameters: {} },
    { plugin: "kv-utilization", weight: 2, parameters: {} },
  ],
  picker: { plugin: "max-score", parameters: {} },
};
