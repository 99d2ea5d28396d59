/** Low and high word of a block's hash as its engine makes it: its last 64 bits. */
export interface EngineHash {
  readonly low: number;
  readonly high: number;
}

/** Memory that a block lies in: the device's, the host's behind it, or a store that is farther away. */
export type Medium = "device" | "host" | "storage";

/** Blocks that can be hit from now on, each following the one before. */
export interface BlockStored {
  readonly kind: "stored";
  readonly hashes: readonly EngineHash[];
  /** The block before the first; undefined where that begins a prompt. */
  readonly parent: EngineHash | undefined;
  /** Of all blocks, in order; empty where the engine does not report them. */
  readonly tokens: readonly number[];
  /** From 1 on where there are tokens; an engine that reports none may state 0. */
  readonly blockTokens: number;
  /** LoRA adapter; "" for the base model. */
  readonly adapter: string;
  /** What a block's hash covers beside its tokens, by block, where anything. */
  readonly extraKeys: readonly (readonly unknown[] | undefined)[];
  readonly medium: Medium;
}

export interface BlockRemoved {
  readonly kind: "removed";
  readonly hashes: readonly EngineHash[];
  readonly medium: Medium;
}

export type KvEvent = BlockStored | BlockRemoved | { readonly kind: "cleared" };

/** What one step of an engine did to its cache. */
export interface KvEventBatch {
  /** Seconds since 1970 by the engine's clock. */
  readonly seconds: number;
  readonly events: readonly KvEvent[];
  /** Events of kinds that this version does not read, or of layers that prefix hits do not depend on. */
  readonly ignored: number;
}
