import * as z from "zod";
import type { BlisPolicy } from "./policy-config.ts";

const weight = z.number().min(0).max(1e6);
/** `routing:` of a policies file. */
export const ROUTING_SCHEMA = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("weighted-scoring"),
    params: z
      .strictObject({
        cache_affinity_weight: weight,
        queue_depth_weight: weight,
        kv_utilization_weight: weight,
        load_balance_weight: weight,
        prefix_match_bonus: weight,
      })
      .partial()
      .prefault({}),
  }),
  z.strictObject({ type: z.literal("profile"), params: z.strictObject({ name: z.string().min(1) }) }),
  ...(["round-robin", "least-loaded", "prefix-affinity"] as const).map((name) =>
    z.strictObject({ type: z.literal(name), params: z.strictObject({}).default({}) }),
  ),
]);

/** Names of weights in a policies file, and the scorers that they are. */
export const WEIGHT_SCORERS = {
  cache_affinity_weight: "prefix-affinity",
  queue_depth_weight: "queue-depth",
  kv_utilization_weight: "kv-utilization",
  load_balance_weight: "load-balance",
  prefix_match_bonus: "prefix-held",
} as const;

/** Where no weight is given; one that is given is not joined by others that were not. */
const WEIGHTS_DEFAULT = { cache_affinity_weight: 3, queue_depth_weight: 2 };

export function routingOf(given: z.output<typeof ROUTING_SCHEMA>): BlisPolicy {
  switch (given.type) {
    case "profile":
      return { policy: given.params.name, scorers: undefined };
    case "weighted-scoring": {
      const params = Object.keys(given.params).length === 0 ? WEIGHTS_DEFAULT : given.params;
      const weights = Object.entries(WEIGHT_SCORERS).map(([key, name]) => {
        return { name, weight: (params as Readonly<Record<string, number | undefined>>)[key] ?? 0 };
      });
      return { policy: "weighted", scorers: weights.filter((one) => one.weight > 0) };
    }
    case "round-robin":
    case "least-loaded":
    case "prefix-affinity":
      return { policy: given.type, scorers: undefined };
  }
}
