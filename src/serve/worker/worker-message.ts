import type { MessagePort } from "node:worker_threads";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Config } from "#config/schema.ts";
import type { EndpointEntry } from "#live/discovery/endpoint-directory.ts";
import type { RewriteRules } from "#live/discovery/workload-rules.ts";
import type { GatewayCounters } from "#live/metrics/gateway-counters.ts";
import type { TokenizerCounts } from "#live/metrics/metric-state.ts";
import type { InnerPlace } from "#live/worker/inner-request.ts";
import type { WorkerMemory } from "#live/worker/worker-memory.ts";
import type { TraceRouter } from "#trace/record.ts";
import type { ServePlan } from "../serve-plan.ts";

/** What chooses a request's profile and its limits. */
export type WorkerPolicy = Pick<ServePlan, "config" | "profiles">;

/** What a worker is started with. */
export interface WorkerWork {
  /** From 1; those that are gone count. */
  readonly number: number;
  /** Workers that share the limits of the process. */
  readonly among: number;
  readonly memory: WorkerMemory;
  readonly port: MessagePort;
  readonly clockOrigin: number;
  readonly config: Config;
  readonly policy: WorkerPolicy;
  /** Of a router for the warm-up. */
  readonly settings: TraceRouter;
  readonly secret: Uint8Array;
  readonly blockTokens: number;
  readonly endpoints: readonly EndpointEntry[];
  readonly hung: readonly EndpointId[];
  readonly rewrites: RewriteRules;
  readonly address: { readonly host: string; readonly port: number };
  readonly inner: InnerPlace;
}

export type ToWorker =
  | { readonly kind: "endpoints"; readonly endpoints: readonly EndpointEntry[] }
  | { readonly kind: "hung"; readonly endpoints: readonly EndpointId[] }
  | { readonly kind: "rewrites"; readonly rewrites: RewriteRules }
  | { readonly kind: "policy"; readonly policy: WorkerPolicy }
  | { readonly kind: "block-size"; readonly blockTokens: number }
  | { readonly kind: "count"; readonly question: number }
  | { readonly kind: "drain"; readonly graceMillis: number; readonly noticeMillis: number };

export interface WorkerCounts {
  readonly counters: GatewayCounters;
  readonly tokenizers: readonly TokenizerCounts[];
  readonly inFlight: number;
}

export type FromWorker =
  /** It takes requests, its code warm. */
  | { readonly kind: "listening" }
  | { readonly kind: "refused"; readonly message: string; readonly code: string | undefined }
  | { readonly kind: "counted"; readonly question: number; readonly counts: WorkerCounts }
  | { readonly kind: "drained"; readonly requestsCut: number; readonly counts: WorkerCounts };
