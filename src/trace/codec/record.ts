import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { Breakdown, Queued, Rejected, Routed } from "#core/input/decision.ts";
import type { BreakerOptions } from "#core/endpoint/breaker.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { EndpointRules } from "#core/endpoint/endpoint-rules.ts";
import type { Input } from "#core/input/input.ts";
import type { HostMemoryPrice } from "#core/prefix/host-memory-price.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Micros } from "#core/base/units.ts";

/** The only version that exists. A reader refuses every other. */
export const TRACE_VERSION = 1;

/** First record of every segment: what is needed to build the router that made the decisions below it. */
export interface TraceHeader {
  readonly version: typeof TRACE_VERSION;
  /** Names one run of one recorder; its segments share it. */
  readonly run: string;
  /** Position of this segment in its run, from 0. */
  readonly segment: number;
  /** Wall time of `at === 0`, in microseconds since 1970. */
  readonly startWallMicros: number;
  readonly router: TraceRouter;
  readonly hash: TraceHash;
  /** Endpoints that were there when the segment began, in order of id. */
  readonly endpoints: readonly Endpoint[];
  /** Settings that all its engines had, as far as they are known; absent where nothing is. */
  readonly engine?: TraceEngine;
  /** The emulated engines that served it, where the gateway had started them itself. */
  readonly emulated?: TraceEmulated;
  /** Whether every group of lines is followed by its checksum (segment-check.ts); absent in traces from before them. */
  readonly checked?: boolean;
  /** Checksum at the end of the segment before; absent in the first one. */
  readonly continues?: number;
  /** Where it was recorded, without naming it; absent where nothing is known. */
  readonly machine?: TraceMachine;
  /** Who decided, where that was another router; absent where the recorded one did. */
  readonly observed?: TraceObserved;
  /** How the trace was made from another one; absent for a recording. */
  readonly derived?: TraceDerivation;
}

/**
 * Another router, whose decisions a trace has: each arrival has where it sent the request, as far as that is known. The
 * router of the header stood beside it, and its profiles decided nothing.
 */
export interface TraceObserved {
  /** Its name, as whoever recorded gave it. */
  readonly router: string;
}

/** What distinguishes two machines and names neither. */
export interface TraceMachine {
  /** Eight hexadecimal digits of a digest: equal ones are likely the same machine. */
  readonly digest?: string;
  /** As the engine reports it. */
  readonly engineVersion?: string;
}

/** An engine's settings as a simulation names them (EngineConfig). What is left out is not known. */
export interface TraceEngine {
  /** block_size, at least 1. */
  readonly blockTokens?: number;
  /** num_gpu_blocks, the reserved one included; at least 2. */
  readonly kvBlocks?: number;
  /** max_num_seqs, at least 1. */
  readonly sequencesMax?: number;
  /** max_num_batched_tokens, at least 1. */
  readonly batchTokensMax?: number;
  /** long_prefill_token_threshold; 0 for none. */
  readonly longPrefillTokens?: number;
  /** max_model_len, at least 1. */
  readonly modelTokensMax?: number;
  readonly prefixCaching?: boolean;
  readonly reserveFullPrompt?: boolean;
  readonly chunkedPrefill?: boolean;
  readonly asyncScheduling?: boolean;
  /** data_parallel_size behind each endpoint, at least 1; the rest is stated of one rank. */
  readonly dataParallel?: number;
}

/** An emulated engine, of which everything is known. */
export interface TraceEmulated {
  /** Its name or file, as configured. */
  readonly engine: string;
  /** As an engine file has them. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface TraceDerivation {
  /** What was done, in words, in order. */
  readonly steps: readonly string[];
  /** Whether a fresh router can come to the same decisions: nothing that they rest on was left out. */
  readonly replayable: boolean;
}

/** Options of the recorded router. */
export interface TraceRouter {
  readonly seed: number;
  readonly profiles: Readonly<Record<string, ProfileSpec>>;
  readonly defaultProfile: string;
  /** Number of the policy that these make up; absent in traces from before policies had one, and for the first. */
  readonly policyVersion?: number;
  /** Who is let in; absent where everybody is. */
  readonly admission?: AdmissionSpec | undefined;
  readonly blockTokens: number;
  readonly staleAfterMicros: Micros;
  /** Absent in traces from before it was a setting, and where it is the usual one. */
  readonly hostMemory?: HostMemoryPrice | undefined;
  readonly breaker: BreakerOptions | undefined;
  /** Absent where nothing is done with endpoints beside breakers. */
  readonly endpointRules?: EndpointRules | undefined;
}

export const TRACE_HASH_ALGORITHMS = ["blake3", "fast", "vllm-sha256", "vllm-sha256-cbor"] as const;
export type TraceHashAlgorithm = (typeof TRACE_HASH_ALGORITHMS)[number];

/**
 * How block hashes were made. The key is never written, so a trace is no dictionary of prompts; vLLM's ways, which a
 * configuration has to ask for, have none.
 */
export interface TraceHash {
  readonly algorithm: TraceHashAlgorithm;
  readonly blockTokens: number;
  /** Tokenizer that cut the prompts, as it was named in the configuration. */
  readonly tokenizer: string;
}

/** One input and the decision that it caused. */
export interface TraceRecord {
  readonly kind: "record";
  readonly input: Input;
  readonly decision: RecordedDecision | undefined;
}

/** Records that the recorder had to drop, reported where they are missing; or a place where the trace is damaged. */
export interface TraceGap {
  readonly kind: "gap";
  readonly at: Micros;
  /** At least 1; of damage, where nobody counted, 1. */
  readonly dropped: number;
  /** What was found at a place that is damaged, with file and line; absent where the recorder dropped. Never written. */
  readonly damage?: string;
}

/** A run begins. State from before it means nothing for what follows. */
export interface TraceRun {
  readonly kind: "run";
  readonly header: TraceHeader;
}

export type TraceItem = TraceRun | TraceRecord | TraceGap;

/** Version of a decision from before policies had one. */
export const NO_POLICY_VERSION = 0;

/**
 * A decision as it was written: exact but for candidates beyond the bound, whose values only the digest covers. Its
 * policyVersion is NO_POLICY_VERSION where none was written.
 */
export type RecordedDecision = (Omit<Routed, "breakdown"> | Omit<Rejected, "breakdown"> | Omit<Queued, "breakdown">) & {
  readonly breakdown: RecordedBreakdown;
};

export interface RecordedBreakdown extends Breakdown {
  /** Endpoints that the decision saw; `candidates` holds the chosen one and the best others, up to the bound. */
  readonly endpointCount: number;
  /** breakdownDigest of the complete breakdown. */
  readonly digest: number;
}

/**
 * A number that two breakdowns share only when every total and every scorer's value is the same, bit for bit (FNV-1a
 * over 32-bit words, low word first; two different ones agree by chance once in 4e9).
 */
export function breakdownDigest(breakdown: Pick<Breakdown, "totals" | "values">): number {
  return digestWords(digestWords(0x811c9dc5, breakdown.totals), breakdown.values) >>> 0;
}

/** Of a breakdown that was written down, the digest of the complete one. */
export function digestOf(breakdown: Breakdown): number {
  return "digest" in breakdown ? (breakdown as RecordedBreakdown).digest : breakdownDigest(breakdown);
}

function digestWords(seed: number, values: Float64Array): number {
  const words = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  let hash = seed;
  for (let i = 0; i < words.length; i++) hash = Math.imul(hash ^ words[i]!, 0x01000193);
  return hash;
}
