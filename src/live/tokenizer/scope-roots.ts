import { deriveKey, keyedHash } from "blake3-wasm";
import { LRUCache } from "lru-cache";
import type { ChainValue } from "#core/prompt/block-hash.ts";
import type { CacheScope } from "./tokenizer.ts";

const KEY_CONTEXT = "gnomon 2026 block chain root";
const ROOTS_MAX = 16_384;

/**
 * The chain value before the first block: BLAKE3 keyed with the deployment's secret, over the model (or adapter) and the
 * cache salt, each behind its length in bytes. Without the secret a chain reveals nothing of the prompt.
 */
export class ScopeRoots {
  readonly #key: Buffer;
  readonly #roots = new LRUCache<string, ChainValue>({ max: ROOTS_MAX });

  constructor(secret: string | Uint8Array) {
    this.#key = deriveKey(KEY_CONTEXT, Buffer.from(secret));
  }

  /** The caller must not write to it. */
  root(scope: CacheScope): ChainValue {
    const key = scopeKey(scope);
    const known = this.#roots.get(key);
    if (known !== undefined) return known;
    const digest = Buffer.from(keyedHash(this.#key, Buffer.concat([sized(scope.model), sized(scope.salt)])));
    const root = Int32Array.from({ length: 8 }, (_, word) => digest.readInt32LE(4 * word));
    this.#roots.set(key, root);
    return root;
  }
}

/** One string per scope, and never the same for two. */
export function scopeKey(scope: CacheScope): string {
  return `${scope.model.length}:${scope.model}${scope.salt}`;
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes.length));
  return Buffer.concat([length, bytes]);
}
