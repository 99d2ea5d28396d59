import { achievedBy, FIRST_TOKEN_DELAY } from "./achieved.ts";
import type { Micros } from "#core/base/units.ts";
import { type EngineConfig, engineDefaults, type QueueDelay } from "./config.ts";
import type { Hardware } from "./hardware.ts";
import { connectorMicros } from "./kv-connector.ts";
import { kvBlocksThatFit } from "./kv-capacity.ts";
import type { ModelConfig } from "./step-time/hugging-face.ts";
import { GRAPH_TOKENS_MAX } from "./step-time/graph-tokens.ts";
import type { Achieved } from "./step-time/kernel-roofline.ts";
import { kvBytesPerToken } from "./step-time/model-shape.ts";

export interface ModelledOptions {
  readonly tensorParallel: number;
  /** Share of a board's memory that the engine may use. */
  readonly utilization: number;
  /** No CUDA graphs (enforce_eager). */
  readonly eager?: boolean;
  /** Steps are composed while the last one runs, vLLM's way since 0.14; true when left out. */
  readonly asyncScheduling?: boolean;
  /** It hands blocks over to other engines, or fetches theirs (kv_transfer_config). */
  readonly connector?: boolean;
  /** Microseconds that such an engine waits for the other boards in each step; connectorMicros when left out. */
  readonly connectorMicros?: Micros;
  readonly achieved?: Achieved;
  readonly firstTokenDelay?: QueueDelay;
  readonly sequencesMax?: number;
  readonly batchTokensMax?: number;
}

/** Boards with so much memory get vLLM's larger defaults. */
const LARGE_MEMORY_BYTES = 70 * 2 ** 30;

/** A model on boards as vLLM would serve it by default, its speed by a roofline for each group of kernels. */
export function modelledEngine(model: ModelConfig, board: Hardware, options: ModelledOptions): EngineConfig {
  const {
    tensorParallel,
    utilization,
    achieved = achievedBy(board.generation),
    firstTokenDelay = FIRST_TOKEN_DELAY,
    asyncScheduling = true,
    connector = false,
  } = options;
  const { shape, vocabulary, tokensMax } = model;
  const { memoryBytes, tflopsPeak, tflopsPeakNarrow, bandwidthTbs, linkGbs } = board;
  const defaults = engineDefaults();
  const isLarge = memoryBytes >= LARGE_MEMORY_BYTES;
  const waitMicros = connector ? (options.connectorMicros ?? connectorMicros(tensorParallel, asyncScheduling)) : 0;
  const sequencesMax = options.sequencesMax ?? (isLarge ? 1024 : 256);
  return {
    ...defaults,
    kvBlocks: kvBlocksThatFit({
      ...model,
      memoryBytes,
      utilization,
      tensorParallel,
      blockTokens: defaults.blockTokens,
    }),
    kvBytesPerToken: Math.ceil(kvBytesPerToken(shape, tensorParallel) * tensorParallel),
    modelTokensMax: tokensMax,
    sequencesMax,
    batchTokensMax: options.batchTokensMax ?? (isLarge ? 8192 : 2048),
    asyncScheduling,
    stepGap: { ...defaults.stepGap, baseMicros: waitMicros },
    queueDelay: firstTokenDelay,
    stepTime: {
      kind: "kernel-roofline",
      model: shape,
      vocabulary,
      board: { tflopsPeak, ...(tflopsPeakNarrow !== undefined && { tflopsPeakNarrow }), bandwidthTbs, linkGbs },
      achieved,
      tensorParallel,
      graphTokensMax: options.eager === true ? 0 : Math.min(2 * sequencesMax, GRAPH_TOKENS_MAX),
    },
  };
}
