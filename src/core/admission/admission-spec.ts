import type { PrioritySpec } from "../priority/create.ts";
import type { Micros } from "../base/units.ts";
import type { LimitSpec } from "./create.ts";
import type { ModelCapOptions } from "./model-cap.ts";

/** Who is let in, and in which order, as plain data: part of a policy. */
export interface AdmissionSpec {
  /** By name; a request is let in where all of them admit it. Asked in this order. */
  readonly limits: Readonly<Record<string, LimitSpec>>;
  /** Asked after an endpoint was chosen. */
  readonly modelCap?: ModelCapOptions | undefined;
  readonly classes: ServiceClasses;
  /** What is written into requests as vLLM's priority; their own stays where it is left out. */
  readonly priority?: PrioritySpec | undefined;
  readonly saturation: SaturationSpec;
  /** Requests of classes below 0 are refused from this saturation of their pool on, in (0, 1]; never where left out. */
  readonly shedAt?: number | undefined;
  readonly queue?: QueueSpec | undefined;
}

/** How urgent service classes are: greater is more urgent, below 0 may be shed. */
export interface ServiceClasses {
  readonly scores: Readonly<Record<string, number>>;
  /** Of requests that name no class, or one that is not among them. */
  readonly defaultScore: number;
}

/**
 * When an endpoint is full: the largest of its shares is at least 1. A pool's saturation is the mean of its endpoints'
 * shares, each at most 1, so that it is 1 where none has room.
 */
export interface SaturationSpec {
  /** Requests waiting there, as scraped. */
  readonly waitingMax: number;
  /** KV utilization, in (0, 1]. */
  readonly kvUtilizationMax: number;
  /** Requests there, ours and those of others; where left out, its concurrencyMax where that is known. */
  readonly requestsMax?: number | undefined;
}

export interface QueueSpec {
  /** Requests that wait at most. */
  readonly requestsMax: number;
  /** Tokens of their prompts at most. */
  readonly promptTokensMax: number;
  readonly ttlMicros: Micros;
  /**
   * Wait that a request may expect, as fast as others went on of late: one that would wait longer is refused at once.
   * Without it, whoever fits the queue waits.
   */
  readonly expectedMicrosMax?: Micros | undefined;
  /** Saturation of a pool from which on its requests wait, in (0, 1]. */
  readonly waitAt: number;
  /** Order within a class: the tenant that was served least, or first come, first served. */
  readonly fairness: "least-served" | "first-come";
  readonly inputWeight: number;
  readonly outputWeight: number;
  /** What tenants get relative to one another; 1 for those not named. */
  readonly shares: Readonly<Record<string, number>>;
  readonly emptyPool: EmptyPoolSpec;
}

/** Requests for which there is no endpoint, which wait for one to be started. */
export interface EmptyPoolSpec {
  /** Beside the others; 0 refuses them at once. */
  readonly requestsMax: number;
  readonly ttlMicros: Micros;
  /** Models that may be without any endpoint while others have some. */
  readonly models: readonly string[];
}

export const ADMIT_ALL: AdmissionSpec = {
  limits: {},
  classes: { scores: {}, defaultScore: 0 },
  saturation: { waitingMax: 5, kvUtilizationMax: 0.8 },
};
