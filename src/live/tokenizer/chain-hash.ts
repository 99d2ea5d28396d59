import { blake3Hasher, fastHasher } from "#core/prompt/block-hash.ts";
import type { BlockHasher } from "#core/prompt/block-hasher.ts";
import { ScopeRoots } from "./scope-roots.ts";
import { type VllmHash, vllmHasher, vllmRoot } from "./vllm-hasher.ts";

/** How blocks are hashed: ways of our own, or an engine's, so that its blocks have the same names here. */
export type BlockHash = "blake3" | "fast" | "vllm-sha256" | "vllm-sha256-cbor";

/** What is to be known of engines whose way it is. */
export interface EngineChains {
  /** Their PYTHONHASHSEED; undefined where it is not set. */
  readonly seed?: string | undefined;
  /** What they serve without an adapter. An adapter's hashes cover a path that no event has, a salt's are not made here. */
  readonly models: readonly string[];
}

const VLLM: Partial<Readonly<Record<BlockHash, VllmHash>>> = {
  "vllm-sha256": "sha256",
  "vllm-sha256-cbor": "sha256_cbor",
};

export function hasherOf(blockHash: BlockHash): (blockWords: number) => BlockHasher {
  const algorithm = VLLM[blockHash];
  if (algorithm !== undefined) return vllmHasher(algorithm);
  return blockHash === "fast" ? fastHasher : blake3Hasher;
}

export function rootsOf(blockHash: BlockHash, secret: string | Uint8Array, { seed, models }: EngineChains): ScopeRoots {
  const algorithm = VLLM[blockHash];
  return new ScopeRoots(secret, algorithm && { root: vllmRoot(algorithm, seed), models: new Set(models) });
}

/** Whether an engine's name of a block is its hash here. */
export function namesBlocks(blockHash: BlockHash): boolean {
  return VLLM[blockHash] !== undefined;
}
