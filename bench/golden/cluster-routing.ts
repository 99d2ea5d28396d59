import type { ProfileSpec, ScorerSpec } from "#core/plugin/spec.ts";

/** BLIS's default list of the weighted policy. */
const DEFAULT_SCORERS = "precise-prefix-cache:2,queue-depth:1,kv-utilization:1";

/** BLIS's load of an endpoint: queue and batch as last read, and besides them the router's own requests in flight. */
const DOUBLE_COUNT = { measure: "scraped-and-own" };

/** BLIS's scorers by the names that they have in the catalog. */
const SCORERS: Readonly<Record<string, Pick<ScorerSpec, "plugin" | "parameters">>> = {
  "prefix-affinity": { plugin: "prefix-affinity", parameters: {} },
  "precise-prefix-cache": { plugin: "precise-prefix-cache", parameters: {} },
  "no-hit-lru": { plugin: "no-hit-lru", parameters: {} },
  "queue-depth": { plugin: "queue", parameters: {} },
  "kv-utilization": { plugin: "kv-utilization", parameters: {} },
  "load-balance": { plugin: "load-balance", parameters: DOUBLE_COUNT },
  "active-requests": { plugin: "active-request", parameters: {} },
  "running-requests": { plugin: "running-requests", parameters: {} },
  "load-aware": { plugin: "load-aware", parameters: {} },
  "vllm-dp": { plugin: "vllm-load", parameters: {} },
};

const ONE = { weight: 1, parameters: DOUBLE_COUNT };

/** A routing policy of BLIS as a profile. Throws with the accepted names. */
export function routingProfile(policy: string, scorers: string): ProfileSpec {
  const picker = (tieBreak: string) => ({ plugin: "max-score", parameters: { tieBreak } });
  switch (policy) {
    case "":
    case "round-robin":
      return { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
    case "least-loaded":
      return { filters: [], scorers: [{ plugin: "load-balance", ...ONE }], picker: picker("random") };
    case "always-busiest":
      return { filters: [], scorers: [{ plugin: "most-loaded", ...ONE }], picker: picker("lowest-id") };
    case "weighted": {
      const list = scorers === "" ? DEFAULT_SCORERS : scorers;
      return { filters: [], scorers: besideOwn(list.split(",").map(scorerOf)), picker: picker("random") };
    }
    default:
      throw new Error(
        `config.routing_policy: expected round-robin, least-loaded, weighted or always-busiest, got ${policy}`,
      );
  }
}

/** Where the router has an index of its own, the scorer that reads the engines' caches looks into them. */
function besideOwn(scorers: readonly ScorerSpec[]): readonly ScorerSpec[] {
  if (!scorers.some(({ plugin }) => plugin === "prefix-affinity")) return scorers;
  return scorers.map((scorer) =>
    scorer.plugin === "precise-prefix-cache"
      ? { ...scorer, plugin: "prefix-oracle", parameters: { scale: "min-max" } }
      : scorer,
  );
}

function scorerOf(pair: string): ScorerSpec {
  const [name = "", weight = ""] = pair.split(":").map((part) => part.trim());
  const found = Object.hasOwn(SCORERS, name) ? SCORERS[name] : undefined;
  if (found === undefined || !(Number(weight) > 0)) {
    throw new Error(`config.routing_scorers: expected ${Object.keys(SCORERS).join(", ")} with weights, got ${pair}`);
  }
  return { ...found, weight: Number(weight) };
}
