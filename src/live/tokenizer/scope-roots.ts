import { deriveKey, keyedHash } from "blake3-wasm";
import { LRUCache } from "lru-cache";
import type { ChainValue } from "#core/prompt/block-hasher.ts";
import type { CacheScope } from "./text/tokenizer.ts";

const KEY_CONTEXT = "gnomon 2026 block chain root";
const ROOTS_MAX = 16_384;

/** Where chains of some models begin as their engines' own do; their prompts without a salt. */
export interface EngineRoot {
  readonly root: ChainValue;
  readonly models: ReadonlySet<string>;
}

/**
 * The chain value before the first block: BLAKE3 keyed with the deployment's secret, over the model (or adapter) and the
 * cache salt, each behind its length in bytes. Without the secret a chain reveals nothing of the prompt. Chains that
 * begin as an engine's have no key.
 */
export class ScopeRoots {
  readonly #key: Buffer;
  readonly #roots = new LRUCache<string, ChainValue>({ max: ROOTS_MAX });

  readonly #engine: EngineRoot | undefined;

  constructor(secret: string | Uint8Array, engine?: EngineRoot) {
    this.#engine = engine;
    this.#key = deriveKey(KEY_CONTEXT, Buffer.from(secret));
  }

  /** The caller must not write to it. */
  root(scope: CacheScope): ChainValue {
    if (scope.salt === "" && this.#engine?.models.has(scope.model) === true) return this.#engine.root;
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
