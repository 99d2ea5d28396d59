import type { BlockChain } from "#core/prompt/block-chain.ts";
import { fastHasher } from "#core/prompt/block-hash.ts";
import { mix32 } from "#core/base/random.ts";
import type { EnginePrompt } from "#engine/further-answer.ts";
import { firstPromptTokens, type WorkloadRequest } from "#trace/workload-request.ts";

/**
 * Gives a workload's prompts chained block hashes at a block size of choice, without text: a recorded content id stands
 * for `blockTokens` tokens and all before them, so its part blocks are named by (id, place within it). Tokens that no id
 * covers are the request's own and never match another's. Exact token ids, where a workload has them, are hashed.
 */
export class WorkloadChains {
  readonly #blockTokens: number;
  readonly #seed: number;
  readonly #hasher: ReturnType<typeof fastHasher>;
  /** Chains are cut from it, since a small array of its own costs a request more than hashing does. */
  #slab = new Int32Array(0);
  #cut = 0;
  /** What the places of an id's parts mix into its name, for ids with this high half. */
  #placeHigh = -1;
  #placeLeft = new Int32Array(0);
  #placeRight = new Int32Array(0);

  constructor(blockTokens: number, seed: number) {
    this.#blockTokens = blockTokens;
    this.#seed = mix32(seed);
    this.#hasher = fastHasher(blockTokens);
  }

  /** Of its first prompt where it has several. */
  chainOf(request: WorkloadRequest): BlockChain {
    const blockTokens = this.#blockTokens;
    const length = Math.floor(firstPromptTokens(request) / blockTokens);
    const hashes = this.#hashes(2 * length);
    if (request.tokenIds !== undefined) {
      this.#hasher.extend(new Int32Array(8), request.tokenIds, 0, length, hashes, 0);
      return { hashes, length, blockTokens };
    }
    const ids = request.blockIds ?? NO_IDS;
    const perId = request.blockTokens / blockTokens;
    const named = Math.min(length, Math.floor(ids.length * perId));
    if (perId === 1) this.#nameWhole(hashes, named, ids);
    else this.#nameParts(hashes, named, ids, perId);
    for (let i = named; i < length; i++) this.#own(hashes, i, i, request.index);
    return { hashes, length, blockTokens };
  }

  /** Its other prompts, none of which is taken to have anything in common with another. */
  furtherPrompts({ tokensByPrompt = NO_TOKENS, index }: WorkloadRequest): EnginePrompt[] {
    let named = Math.floor((tokensByPrompt[0] ?? 0) / this.#blockTokens);
    return tokensByPrompt.slice(1).map((promptTokens) => {
      const length = Math.floor(promptTokens / this.#blockTokens);
      const hashes = this.#hashes(2 * length);
      for (let i = 0; i < length; i++) this.#own(hashes, i, named++, index);
      return { promptTokens, hashes };
    });
  }

  /** The same names as `#name` gives with place 0; neighbours share the high half of their ids, and so its mix. */
  #nameWhole(hashes: Int32Array, named: number, ids: Float64Array): void {
    let high = -1;
    let left = 0;
    let right = 0;
    for (let i = 0; i < named; i++) {
      const id = ids[i]!;
      const own = Math.floor(id / LOW);
      if (own !== high) {
        high = own;
        left = mix32(high ^ mix32(this.#seed));
        right = mix32(high + 0x9e37_79b9 + mix32(0x85eb_ca6b));
      }
      const low = id - high * LOW;
      hashes[2 * i] = mix32(low ^ left);
      hashes[2 * i + 1] = mix32(low ^ right);
    }
  }

  /** Blocks of another size than the recorded ones. */
  #nameParts(hashes: Int32Array, named: number, ids: Float64Array, perId: number): void {
    if (Number.isInteger(perId)) return this.#nameEqualParts(hashes, named, ids, perId);
    for (let i = 0; i < named; i++) {
      // An id stands for all before it, so a block is what the last id that reaches into it names.
      const place = Math.ceil((i + 1) / perId) - 1;
      this.#name(hashes, i, ids[place]!, i - Math.floor(place * perId));
    }
  }

  /** The same names, where an id has the same number of parts each time: what a part's place does to a name is kept. */
  #nameEqualParts(hashes: Int32Array, named: number, ids: Float64Array, perId: number): void {
    for (let first = 0, at = 0; first < named; first += perId, at++) {
      const id = ids[at]!;
      const high = Math.floor(id / LOW);
      const low = id - high * LOW;
      this.#mixPlaces(high, perId);
      const left = this.#placeLeft;
      const right = this.#placeRight;
      const parts = Math.min(perId, named - first);
      for (let part = 0, word = 2 * first; part < parts; part++, word += 2) {
        hashes[word] = mix32(low ^ left[part]!);
        hashes[word + 1] = mix32(low ^ right[part]!);
      }
    }
  }

  #mixPlaces(high: number, places: number): void {
    if (high === this.#placeHigh && places === this.#placeLeft.length) return;
    this.#placeHigh = high;
    this.#placeLeft = Int32Array.from({ length: places }, (_, place) => mix32(high ^ mix32(place ^ this.#seed)));
    this.#placeRight = Int32Array.from({ length: places }, (_, place) =>
      mix32(high + 0x9e37_79b9 + mix32(place + 0x85eb_ca6b)),
    );
  }

  /**
   * The blocks of a prompt and its answer, where the trace holds the answer's or the conversation's next prompt begins
   * with both. Prompt blocks keep the hashes that they have.
   */
  withAnswer(prompt: Int32Array, request: WorkloadRequest, next: WorkloadRequest | undefined): Int32Array {
    const tokens = request.promptTokens + request.outputTokens;
    const known = answered(request);
    if (known === undefined && (next === undefined || !goesOn(request, next, tokens))) return prompt;
    const { hashes } = this.chainOf(known ?? next!);
    const sequence = hashes.subarray(0, 2 * Math.floor(tokens / this.#blockTokens));
    sequence.set(prompt);
    return sequence;
  }

  #hashes(words: number): Int32Array {
    if (words > SLAB_WORDS / 8) return new Int32Array(words);
    if (this.#cut + words > this.#slab.length) {
      this.#slab = new Int32Array(SLAB_WORDS);
      this.#cut = 0;
    }
    this.#cut += words;
    return this.#slab.subarray(this.#cut - words, this.#cut);
  }

  /** Two bijections of the id and the place, so that different ids have different hashes. */
  #name(hashes: Int32Array, block: number, id: number, place: number): void {
    const low = id % LOW;
    const high = Math.floor(id / LOW);
    hashes[2 * block] = mix32(low ^ mix32(high ^ mix32(place ^ this.#seed)));
    hashes[2 * block + 1] = mix32(low ^ mix32(high + 0x9e37_79b9 + mix32(place + 0x85eb_ca6b)));
  }

  #own(hashes: Int32Array, at: number, block: number, index: number): void {
    hashes[2 * at] = mix32(block ^ mix32(index ^ this.#seed ^ 0x5bd1_e995));
    hashes[2 * at + 1] = mix32(index + 0x27d4_eb2f);
  }
}

/** The request as if the blocks of its answer that are known were its prompt's. */
function answered(request: WorkloadRequest): WorkloadRequest | undefined {
  const { blockIds, answerIds, blockTokens } = request;
  if (blockIds === undefined || answerIds === undefined) return undefined;
  const full = Math.min(blockIds.length, Math.floor(request.promptTokens / blockTokens));
  const ids = new Float64Array(full + answerIds.length);
  ids.set(blockIds.subarray(0, full));
  ids.set(answerIds, full);
  return { ...request, promptTokens: Math.floor(ids.length * blockTokens), blockIds: ids, tokenIds: undefined };
}

/** Whether the later prompt begins with the earlier one and `tokens` in all of it and its answer. */
function goesOn(request: WorkloadRequest, next: WorkloadRequest, tokens: number): boolean {
  return next.promptTokens >= tokens && next.tokenIds === undefined && begins(request, next);
}

/** Whether the later prompt has the earlier one's full blocks at its beginning. */
function begins(request: WorkloadRequest, next: WorkloadRequest): boolean {
  const ids = request.blockIds;
  if (ids === undefined || next.blockIds === undefined || request.blockTokens !== next.blockTokens) return false;
  const full = Math.min(ids.length, Math.floor(request.promptTokens / request.blockTokens));
  return full === 0 || ids[full - 1] === next.blockIds[full - 1];
}

const SLAB_WORDS = 16_384;
const NO_TOKENS: readonly number[] = [];
const NO_IDS = new Float64Array(0);
const LOW = 0x1_0000_0000;
