import type { BlockHasher, ChainValue } from "#core/prompt/block-hasher.ts";
import type { CacheScope } from "../tokenizer/text/tokenizer.ts";
import { EngineBlockTable, NO_PLACE } from "./engine-block-table.ts";
import type { BlockStored, EngineHash } from "./kv-event.ts";

const VALUE_WORDS = 8;
/** A chain value begins with its block's hash. */
const HASH_WORDS = 2;

export interface TranslatorOptions {
  /** Cuts and hashes as it does prompts. */
  readonly hasher: BlockHasher;
  /** The chain value before the first block, not to be written to. */
  readonly rootOf: (scope: CacheScope) => ChainValue;
  /** Name by which clients ask for what the engine serves without an adapter. */
  readonly modelOf: () => string;
  /** Blocks that may be known; with more, all are forgotten. */
  readonly blocksMax: number;
  /** Engines' names of blocks are their hashes here, so that no tokens are needed; false when left out. */
  readonly namesBlocks?: boolean;
}

/** Blocks in our own hashes, and those that could not be put into them. */
export interface Translated {
  /** Two words a block. */
  readonly hashes: Int32Array;
  /** Blocks of the engine's of which nothing is known. */
  readonly unknownBlocks: number;
}

/**
 * Puts one engine's blocks into hashes of our own, from the tokens that it reports: whatever algorithm, seed and width its
 * hashes have, they are only names here.
 */
export class BlockTranslator {
  readonly #options: TranslatorOptions;
  #table = new EngineBlockTable(1);
  /** Tokens of an engine's block; 0 before the first. */
  #engineBlockTokens = 0;
  readonly #value: ChainValue = new Int32Array(VALUE_WORDS);
  #words = new Int32Array(0);
  /** Stored blocks whose parent is not known, or that depend on more than tokens. */
  untranslated = 0;

  constructor(options: TranslatorOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#table.size;
  }

  get bytes(): number {
    return this.#table.bytes;
  }

  /** Whether an engine's blocks of so many tokens are whole numbers of ours. */
  fits(blockTokens: number): boolean {
    return blockTokens % this.#options.hasher.blockWords === 0;
  }

  /** Whether more blocks are known than the engine can have: removals were lost. */
  get isFull(): boolean {
    return this.#table.size >= this.#options.blocksMax;
  }

  /** Blocks on the device, each behind the one before. */
  stored(event: BlockStored): Translated {
    return this.#store(event, false);
  }

  #store(event: BlockStored, inHost: boolean): Translated {
    const { hashes, tokens, blockTokens } = event;
    if (tokens.length === 0 && this.#options.namesBlocks === true) return this.#byName(event, inHost);
    if (tokens.length === 0) {
      this.untranslated += hashes.length;
      return { hashes: new Int32Array(0), unknownBlocks: hashes.length };
    }
    const parts = this.#partsOf(blockTokens);
    const known = this.#begin(event) ? plainBlocks(event) : 0;
    this.untranslated += hashes.length - known;
    const ours = new Int32Array(2 * parts * known);
    const words = this.#wordsOf(tokens, known * blockTokens);
    for (let i = 0; i < known; i++) {
      this.#options.hasher.extend(this.#value, words, i * blockTokens, parts, ours, i * parts);
      this.#table.add(hashes[i]!, this.#value, ours, i * parts, inHost);
    }
    return { hashes: ours, unknownBlocks: hashes.length - known };
  }

  /** Blocks without tokens of an engine whose way of hashing is ours. Behind them goes on only what has none either. */
  #byName({ hashes, blockTokens }: BlockStored, inHost: boolean): Translated {
    const { blockWords } = this.#options.hasher;
    if (blockTokens !== 0 && blockTokens !== blockWords) {
      this.untranslated += hashes.length;
      return { hashes: new Int32Array(0), unknownBlocks: hashes.length };
    }
    this.#partsOf(blockWords);
    const ours = new Int32Array(2 * hashes.length);
    this.#value.fill(0);
    hashes.forEach((hash, i) => {
      ours.set([hash.low, hash.high], HASH_WORDS * i);
      this.#value.set([hash.low, hash.high]);
      this.#table.add(hash, this.#value, ours, i, inHost);
    });
    return { hashes: ours, unknownBlocks: 0 };
  }

  removed(hashes: readonly EngineHash[]): Translated {
    return this.#named(hashes, (place) => this.#table.removeAt(place));
  }

  /** Those that are known, in our hashes; does `change` to each. */
  #named(hashes: readonly EngineHash[], change: (place: number) => void): Translated {
    const parts = Math.max(1, this.#engineBlockTokens / this.#options.hasher.blockWords);
    const ours = new Int32Array(2 * parts * hashes.length);
    let found = 0;
    for (const hash of hashes) {
      const place = this.#table.find(hash);
      if (place === NO_PLACE) continue;
      this.#table.hashesAt(place, ours, parts * found++);
      change(place);
    }
    return { hashes: ours.subarray(0, 2 * parts * found), unknownBlocks: hashes.length - found };
  }

  /** Blocks in the host's memory: by their names where those are known, else by their tokens. */
  storedInHost(event: BlockStored): Translated {
    const { hashes } = event;
    if (event.tokens.length > 0 && hashes.some((hash) => this.#table.find(hash) === NO_PLACE))
      return this.#store(event, true);
    const named = this.#named(hashes, (place) => this.#table.addHostAt(place));
    this.untranslated += named.unknownBlocks;
    return named;
  }

  removedFromHost(hashes: readonly EngineHash[]): Translated {
    return this.#named(hashes, (place) => this.#table.removeHostAt(place));
  }

  /** Removals may have been missed: what is known goes on to name blocks, and counts as stored once at most. */
  missed(): void {
    this.#table.forgetCopies();
  }

  /** The engine's cache is empty. */
  clear(): void {
    this.#table.clear();
  }

  #partsOf(blockTokens: number): number {
    const parts = blockTokens / this.#options.hasher.blockWords;
    if (blockTokens !== this.#engineBlockTokens) {
      this.#engineBlockTokens = blockTokens;
      this.#table = new EngineBlockTable(parts);
    }
    return parts;
  }

  /** Puts the value before the first block into `#value`; false where it is not known. */
  #begin(event: BlockStored): boolean {
    if (event.parent !== undefined) {
      const place = this.#table.find(event.parent);
      if (place === NO_PLACE) return false;
      this.#table.valueAt(place, this.#value);
      return this.#value.some((word, i) => i >= HASH_WORDS && word !== 0);
    }
    const salt = saltOf(event);
    if (salt === undefined) return false;
    const model = event.adapter === "" ? this.#options.modelOf() : event.adapter;
    this.#value.set(this.#options.rootOf({ model, salt }));
    return true;
  }

  #wordsOf(tokens: readonly number[], count: number): Int32Array {
    if (this.#words.length < count) this.#words = new Int32Array(2 * count);
    for (let i = 0; i < count; i++) this.#words[i] = tokens[i]!;
    return this.#words;
  }
}

/** The cache salt, which the first block of a prompt covers; undefined where that covers something else. */
function saltOf({ extraKeys, adapter }: BlockStored): string | undefined {
  const others = (extraKeys[0] ?? []).filter((key) => key !== adapter || adapter === "");
  if (others.length === 0) return "";
  const [salt] = others;
  return others.length === 1 && typeof salt === "string" ? salt : undefined;
}

/** Leading blocks whose hashes cover tokens, adapter and salt alone: no image, no embeddings. */
function plainBlocks({ hashes, extraKeys, adapter, parent }: BlockStored): number {
  for (let i = parent === undefined ? 1 : 0; i < hashes.length; i++) {
    if (extraKeys[i]?.some((key) => key !== adapter) === true) return i;
  }
  return hashes.length;
}
