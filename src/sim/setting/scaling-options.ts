import type { AutoscalerOptions } from "#core/autoscale/autoscaler.ts";
import type { Micros } from "#core/base/units.ts";

/**
 * What becomes of the requests of a replica that is taken away.
 * - wait: it ends what it has
 * - redirect: requests without a token go to others, the rest ends there
 * - immediate: it is killed; what has no token goes to others, begun answers are cut
 */
export const DRAIN_POLICIES = ["wait", "redirect", "immediate"] as const;
export type DrainPolicy = (typeof DRAIN_POLICIES)[number];

/** An autoscaler in a simulation, and how long what it wants takes. Plain data. */
export interface ScalingOptions {
  readonly autoscaler: AutoscalerOptions;
  /** Between two looks at the signals, and from a look until it is acted on. */
  readonly everyMicros: Micros;
  readonly metricsDelayMicros: Micros;
  /** From the decision until a machine with the engine on it runs, and from there until the engine takes requests. */
  readonly provisioningMicros: Micros;
  readonly warmupMicros: Micros;
  readonly drain: DrainPolicy;
  /** Arrivals per second, a value per window of time from 0 on; what the policy `oracle` knows. */
  readonly arrivals?: { readonly windowMicros: Micros; readonly perSecond: readonly number[] } | undefined;
}

/** A change of the number of replicas. */
export interface ScaleAction {
  readonly at: Micros;
  readonly action: "up" | "down";
  /** Replicas before and after it, those that are coming among them. */
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** What an autoscaler did and what it cost. */
export interface ScalingFigures {
  readonly ups: number;
  readonly downs: number;
  /** Changes of direction within cooldown or stabilization. */
  readonly oscillations: number;
  /** From each replica's order until it was gone, summed: what is paid for. */
  readonly replicaSeconds: number;
  readonly replicasMean: number;
  readonly replicasMax: number;
  /** The first of them, in order of time. */
  readonly actions: readonly ScaleAction[];
}
