import { inFlightPerReplica, type ScaleSignals, utilizationOf } from "./scale-signals.ts";

/** A policy of scaling as plain data. Parts and utilizations are in (0, 1]. */
export type ScalePolicySpec =
  /** One more above `up`, one less below `down`: utilization of the ready replicas. */
  | { readonly type: "threshold"; readonly up: number; readonly down: number }
  /** As Kubernetes' HorizontalPodAutoscaler: replicas times utilization over `target`, still within `tolerance` of it. */
  | { readonly type: "target-utilization"; readonly target: number; readonly tolerance: number }
  /** The same for requests in flight per replica, waiting ones among them. */
  | { readonly type: "queue-depth"; readonly target: number; readonly tolerance: number }
  /**
   * As llm-d's workload variant autoscaler: tokens that requests hold and will need, over the part `kvPart` of a replica's
   * KV capacity; one more where they exceed `up` of it, one less where one less would still keep them below `down`.
   */
  | { readonly type: "saturation"; readonly kvPart: number; readonly up: number; readonly down: number }
  /** Knows what arrives: no policy can do better with replicas that serve so many requests a second. */
  | { readonly type: "oracle"; readonly requestsPerSecond: number };

export const SCALE_POLICIES = ["threshold", "target-utilization", "queue-depth", "saturation", "oracle"] as const;

export const SCALE_POLICY_DEFAULTS: {
  readonly [K in ScalePolicySpec["type"]]: ScalePolicySpec & { readonly type: K };
} = {
  threshold: { type: "threshold", up: 0.8, down: 0.3 },
  "target-utilization": { type: "target-utilization", target: 0.6, tolerance: 0.1 },
  "queue-depth": { type: "queue-depth", target: 16, tolerance: 0.1 },
  saturation: { type: "saturation", kvPart: 0.8, up: 0.8, down: 0.4 },
  oracle: { type: "oracle", requestsPerSecond: 10 },
};

export interface Desired {
  readonly replicas: number;
  /** For a person: the figure that led to it. */
  readonly reason: string;
}

/** Replicas that the policy wants, before any bound; `have` are those that are ready and those that are coming. */
export function desiredReplicas(spec: ScalePolicySpec, signals: ScaleSignals, have: number): Desired {
  switch (spec.type) {
    case "threshold": {
      const utilization = utilizationOf(signals);
      const step = utilization > spec.up ? 1 : utilization < spec.down ? -1 : 0;
      return { replicas: have + step, reason: `utilization ${percent(utilization)}` };
    }
    case "target-utilization": {
      const utilization = utilizationOf(signals);
      return proportional(spec, utilization, signals.ready, have, `utilization ${percent(utilization)}`);
    }
    case "queue-depth": {
      const depth = inFlightPerReplica(signals);
      return proportional(spec, depth, signals.ready, have, `${depth.toFixed(1)} requests in flight per replica`);
    }
    case "saturation":
      return bySaturation(spec, signals, have);
    case "oracle": {
      const ahead = signals.requestsPerSecondAhead ?? signals.requestsPerSecond;
      return {
        replicas: Math.ceil(ahead / spec.requestsPerSecond),
        reason: `${ahead.toFixed(1)} requests per second to come`,
      };
    }
  }
}

/** https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details */
function proportional(
  { target, tolerance }: { readonly target: number; readonly tolerance: number },
  seen: number,
  ready: number,
  have: number,
  reason: string,
): Desired {
  const ratio = seen / target;
  if (Math.abs(ratio - 1) <= tolerance) return { replicas: have, reason };
  const replicas = Math.ceil(ready * ratio);
  // Replicas that are coming have not taken any of the load yet: they are waited for before any is taken away.
  return { replicas: ratio > 1 ? Math.max(replicas, have) : Math.min(replicas, have), reason };
}

function bySaturation(
  { kvPart, up, down }: ScalePolicySpec & { readonly type: "saturation" },
  { ready, kvUtilization, kvTokens, waiting, promptTokensMean }: ScaleSignals,
  have: number,
): Desired {
  const demand = kvUtilization * kvTokens * ready + waiting * promptTokensMean;
  const supply = kvPart * kvTokens;
  const reason = `${percent(ready === 0 || supply === 0 ? 0 : demand / (supply * ready))} of the KV capacity in demand`;
  if (supply === 0) return { replicas: have, reason };
  const needed = Math.ceil(demand / (up * supply));
  if (needed > have) return { replicas: needed, reason };
  const spare = have > 1 && demand <= down * supply * (have - 1);
  return { replicas: spare ? have - 1 : have, reason };
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}
