import type { EngineConfig } from "#engine/config.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { PrefixSignal } from "#sim/setting/simulation-options.ts";
import type { SignalOptions } from "#sim/setting/signal-options.ts";
import type { GoldenAdmission } from "./cluster-admission.ts";

export interface GoldenRequest {
  readonly arrivalAt: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Tokens at the start that are the same for all of the group; "" for none. */
  readonly group: string;
  readonly groupTokens: number;
  /** Infinity for never. */
  readonly deadlineAt: number;
  readonly priority: number;
}

/** Figures of a whole or of one engine, by the names of the vectors, and what is known of each request. */
export interface GoldenExpectation {
  readonly aggregate: Readonly<Record<string, unknown>>;
  readonly perInstance: readonly Readonly<Record<string, unknown>>[];
  readonly perRequest: readonly GoldenOutcome[];
  readonly decisions: readonly GoldenDecision[];
  readonly steps: readonly number[] | undefined;
  readonly blockHits: readonly number[] | undefined;
  readonly blockMisses: readonly number[] | undefined;
}

/** A field that the vector does not have is undefined and not compared. */
export interface GoldenOutcome {
  readonly status: string;
  readonly instance: number | undefined;
  readonly ttft: number | undefined;
  readonly e2e: number | undefined;
  readonly delay: number | undefined;
  readonly itlMeanMillis: number | undefined;
}

export interface GoldenDecision {
  readonly t_us: number;
  readonly request_id: number;
  readonly queue_depth?: readonly number[];
  readonly batch_size?: readonly number[];
  readonly in_flight?: readonly number[];
  readonly kv_utilization?: readonly number[];
  readonly free_kv_blocks?: readonly number[];
  readonly effective_load?: readonly number[];
  readonly cached_blocks?: readonly number[];
  readonly scorers?: readonly (readonly number[])[];
  readonly total?: readonly number[];
  readonly tied?: readonly number[];
  readonly chosen: number;
}

/** One case of either form, brought to one. */
export interface GoldenCase {
  readonly name: string;
  /** Names the draws with which ties are broken. */
  readonly seed: number;
  readonly instances: number;
  readonly engine: EngineConfig;
  readonly profile: ProfileSpec;
  readonly admission: GoldenAdmission | undefined;
  readonly signals: SignalOptions;
  readonly prefixes: PrefixSignal;
  /** Age at most of what scorers see that look into the engines; they cannot where it is left out. */
  readonly engineCaches?: { readonly delayMicros: number };
  /** Blocks that the router's own index holds per engine. */
  readonly indexBlocks: number | undefined;
  readonly admissionMicros: number;
  readonly routingMicros: number;
  readonly horizonMicros: number;
  readonly perOutputTokenMicros: number;
  readonly afterLastTokenMicros: number;
  readonly requests: readonly GoldenRequest[];
  readonly expected: GoldenExpectation;
}
