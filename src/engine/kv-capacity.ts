import { kvBytesPerToken, layerBytes, type ModelShape } from "./step-time/model-shape.ts";

export interface KvCapacitySpec {
  readonly shape: ModelShape;
  readonly vocabulary: number;
  readonly tiedEmbeddings: boolean;
  /** Of one GPU. */
  readonly memoryBytes: number;
  /** Part of it that the engine may use (gpu_memory_utilization), in (0, 1]. */
  readonly utilization: number;
  readonly tensorParallel: number;
  readonly blockTokens: number;
}

/**
 * What the engine takes beside weights and cache: context, graphs, activations.
 * Seen on an RTX 4090 with Llama 3.1 8B, 2,048 tokens a step: utilization * memory - weights - cache = 1.15 GiB.
 */
const OVERHEAD_BYTES = 1.15 * 2 ** 30;

/**
 * KV blocks that fit beside the weights, 0 if the weights alone are too large:
 *
 *   floor((memory * utilization - weights / tp - overhead) / (bytes that a token's keys and values take * blockTokens))
 *
 * The keys and values of a layer are shared among the GPUs by heads; where there are fewer heads than GPUs they repeat,
 * and a compressed state (MLA) is on every one.
 */
export function kvBlocksThatFit(spec: KvCapacitySpec): number {
  const { shape, tensorParallel } = spec;
  const weights = weightBytes(spec) / tensorParallel;
  const left = spec.memoryBytes * spec.utilization - weights - OVERHEAD_BYTES;
  return Math.max(0, Math.floor(left / (kvBytesPerToken(shape, tensorParallel) * spec.blockTokens)));
}

/** Bytes of the weights: attention and feed-forward of every layer, embedding and output head. */
export function weightBytes(model: Pick<KvCapacitySpec, "shape" | "vocabulary" | "tiedEmbeddings">): number {
  const { shape, vocabulary, tiedEmbeddings } = model;
  return layerBytes(shape) + vocabulary * shape.hidden * (tiedEmbeddings ? 1 : 2) * shape.bytesPerParameter;
}
