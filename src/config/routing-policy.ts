import * as z from "zod";
import type { Policy } from "./policy-config.ts";

const weight = z.number().min(0).max(1e6);
/** `routing:` of a policies file. */
export const ROUTING_SCHEMA = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("weighted-scoring"),
    params: z
      .strictObject({
        cache_affinity_weight: weight.default(3),
        queue_depth_weight: weight.default(2),
        kv_utilization_weight: weight.default(0),
        load_balance_weight: weight.default(0),
        prefix_match_bonus: weight.default(0),
      })
      .prefault({}),
  }),
  z.strictObject({ type: z.literal("profile"), params: z.strictObject({ name: z.string().min(1) }) }),
  ...(["round-robin", "least-loaded", "prefix-affinity"] as const).map((name) =>
    z.strictObject({ type: z.literal(name), params: z.strictObject({}).default({}) }),
  ),
]);

export function routingOf(given: z.output<typeof ROUTING_SCHEMA>): Policy {
  switch (given.type) {
    case "profile":
      return { policy: given.params.name, scorers: undefined };
    case "weighted-scoring": {
      const { params } = given;
      const weights = [
        { name: "prefix-affinity", weight: params.cache_affinity_weight },
        { name: "queue-depth", weight: params.queue_depth_weight },
        { name: "kv-utilization", weight: params.kv_utilization_weight },
        { name: "load-balance", weight: params.load_balance_weight },
        { name: "prefix-held", weight: params.prefix_match_bonus },
      ];
      return { policy: "weighted", scorers: weights.filter((one) => one.weight > 0) };
    }
    case "round-robin":
    case "least-loaded":
    case "prefix-affinity":
      return { policy: given.type, scorers: undefined };
  }
}
