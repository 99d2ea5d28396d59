import { setImmediate } from "node:timers/promises";
import type { BlockHasher } from "#core/prompt/block-hash.ts";
import { type ChainState, ChainExtender, rootState } from "./chain-state.ts";
import { type MemoNode, PrefixMemo } from "./prefix-memo.ts";
import { type ScopeRoots, scopeKey } from "./scope-roots.ts";
import type { CacheScope } from "./tokenizer.ts";
import type { Step, Words, WordSource } from "./word-source.ts";

/** New blocks between two yields to the event loop: 64 KB of text at 16 tokens a block, below 2 ms with its tokens. */
const BLOCKS_PER_SLICE = 1024;
const NO_WORDS = new Int32Array(0);

/** A prompt as words. */
export interface PromptChain {
  readonly words: number;
  readonly blocks: number;
  /** Shared with later prompts of the conversation: not to be written to or transferred. */
  readonly lanes: Int32Array;
}

export interface MemoLimits {
  readonly memoEntriesMax: number;
  readonly memoBytesMax: number;
}

/** Steps to block chains, through the memo of prefixes. */
export class PromptChains {
  readonly memo: PrefixMemo;
  readonly #roots: ScopeRoots;
  readonly #extender: ChainExtender;
  readonly #sliceWords: number;

  constructor(hasher: BlockHasher, roots: ScopeRoots, limits: MemoLimits) {
    this.#roots = roots;
    this.#extender = new ChainExtender(hasher);
    this.#sliceWords = BLOCKS_PER_SLICE * hasher.blockWords;
    this.memo = new PrefixMemo(limits.memoEntriesMax, limits.memoBytesMax, rootState(new Int32Array(8)));
  }

  get blockWords(): number {
    return this.#extender.blockWords;
  }

  /** `tail` follows the last step and is not remembered: a generation prompt. Undefined where the source cannot do it. */
  encode(
    scope: CacheScope,
    steps: readonly Step[],
    tail: Int32Array,
    source: WordSource,
  ): PromptChain | undefined | Promise<PromptChain | undefined> {
    let node = this.#rootNode(scope);
    let fresh = 0;
    for (let at = 0; at < steps.length; at++) {
      const step = steps[at]!;
      const known = this.#recall(node, step);
      if (known !== undefined) {
        node = known;
        continue;
      }
      if (fresh > this.#sliceWords) return this.#encodeSlowly(node, steps, at, source.words(step), tail, source);
      const words = source.words(step);
      if (words instanceof Promise || (words?.length ?? 0) > this.#sliceWords) {
        return this.#encodeSlowly(node, steps, at, words, tail, source);
      }
      if (words === undefined) {
        this.memo.touch(node);
        return undefined;
      }
      fresh += words.length;
      node = this.memo.add(node, step.tag, ownText(step), this.#extender.extend(node.state, words, 0, words.length));
    }
    this.memo.touch(node);
    return this.#finish(node.state, tail);
  }

  /** A prompt that arrived as token ids, which no conversation is known of. */
  encodeWords(scope: CacheScope, words: Int32Array): PromptChain | Promise<PromptChain> {
    const root = rootState(this.#roots.root(scope));
    if (words.length > this.#sliceWords)
      return this.#extendSlowly(root, words).then((state) => this.#finish(state, NO_WORDS));
    return this.#finish(this.#extender.extend(root, words, 0, words.length), NO_WORDS);
  }

  #rootNode(scope: CacheScope): MemoNode {
    const key = scopeKey(scope);
    const { memo } = this;
    return memo.find(memo.top, "", key) ?? memo.add(memo.top, "", key, rootState(this.#roots.root(scope)));
  }

  #recall(parent: MemoNode, step: Step): MemoNode | undefined {
    const known = this.memo.find(parent, step.tag, step.text);
    if (known === undefined) this.memo.misses++;
    else this.memo.hits++;
    return known;
  }

  async #encodeSlowly(
    start: MemoNode,
    steps: readonly Step[],
    first: number,
    firstWords: Words,
    tail: Int32Array,
    source: WordSource,
  ): Promise<PromptChain | undefined> {
    this.memo.touch(start);
    let node = start;
    let produced = firstWords;
    for (let at = first; at < steps.length; at++) {
      const step = steps[at]!;
      if (at > first) {
        const known = this.#recall(node, step);
        if (known !== undefined) {
          node = known;
          continue;
        }
        produced = source.words(step);
      }
      // The source reuses an array that it answered at once as soon as another request runs.
      const words = produced instanceof Promise ? await produced : produced?.slice();
      if (words === undefined) return undefined;
      const state = await this.#extendSlowly(node.state, words);
      node = this.memo.add(node, step.tag, ownText(step), state);
      this.memo.touch(node);
    }
    return this.#finish(node.state, tail);
  }

  /** Yields at least once. */
  async #extendSlowly(start: ChainState, words: Int32Array): Promise<ChainState> {
    let state = start;
    let from = 0;
    do {
      await setImmediate();
      const to = Math.min(from + this.#sliceWords, words.length);
      state = this.#extender.extend(state, words, from, to);
      from = to;
    } while (from < words.length);
    return state;
  }

  #finish(state: ChainState, tail: Int32Array): PromptChain {
    const lanes = this.#extender.finish(state, tail);
    return { words: state.words + tail.length, blocks: lanes.length / 2, lanes };
  }
}

/** A string that shares no memory with another. */
function ownText(step: Step): string {
  return step.isSlice === true ? String(JSON.parse(JSON.stringify(step.text))) : step.text;
}
