import { engineDefaults, type EngineConfig, type EngineSemantics } from "#engine/config.ts";
import type { StepTimeSpec } from "#engine/step-time/create-step-time.ts";

/** What BLIS does differently from vLLM. */
export const BLIS_SEMANTICS: EngineSemantics = {
  completion: "last-step-start",
  preempted: "restarts",
  fullHit: "nothing",
  hitChunkStart: "zero",
  finalToken: "stored",
  partialBlocks: "back",
  lonePrefill: "limited",
  victimTies: "last",
  mustFit: "prompt",
  duplicates: "last-writer",
};

export interface EngineSizes {
  readonly total_kv_blocks: number;
  readonly block_size: number;
  readonly max_num_seqs: number;
  readonly max_num_batched_tokens: number;
  readonly long_prefill_token_threshold: number;
  readonly max_model_len: number;
}

/** An engine of BLIS; all its blocks are usable where vLLM reserves one. */
export function blisEngine(sizes: EngineSizes, stepTime: StepTimeSpec, overrides: Partial<EngineConfig>): EngineConfig {
  return engineDefaults({
    kvBlocks: sizes.total_kv_blocks + 1,
    blockTokens: sizes.block_size,
    sequencesMax: sizes.max_num_seqs,
    batchTokensMax: sizes.max_num_batched_tokens,
    longPrefillTokens: sizes.long_prefill_token_threshold,
    // There, 0 stands for no limit.
    modelTokensMax: sizes.max_model_len || Infinity,
    reserveFullPrompt: false,
    semantics: BLIS_SEMANTICS,
    coalesce: false,
    check: true,
    stepTime,
    ...overrides,
  });
}

export interface RooflineNumbers {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly intermediate: number;
  readonly bytesPerParameter: number;
  readonly weightBytes?: number;
  readonly mlpMatrices: number;
  readonly tflopsPeak: number;
  readonly bandwidthTbs: number;
  readonly mfuPrefill: number;
  readonly mfuDecode: number;
  readonly tensorParallel: number;
}

export function roofline(numbers: RooflineNumbers): StepTimeSpec {
  const { tflopsPeak, bandwidthTbs, mfuPrefill, mfuDecode, tensorParallel, ...model } = numbers;
  return { kind: "roofline", tensorParallel, model, hardware: { tflopsPeak, bandwidthTbs, mfuPrefill, mfuDecode } };
}
