import type { BlockHasher } from "#core/prompt/block-hasher.ts";
import { type Asker, loopTurn, STAYS } from "../base/loop-turn.ts";
import { type ChainEnd, type ChainState, ChainExtender, rootState } from "./text/chain-state.ts";
import { type MemoNode, PrefixMemo, type NodeHandle } from "./prefix-memo.ts";
import { type ScopeRoots, scopeKey } from "./scope-roots.ts";
import { Sightings } from "./sightings.ts";
import type { CacheScope, ChatMessage } from "./text/tokenizer.ts";
import type { WordStep, Words, WordSource } from "./text/word-source.ts";

/** New blocks between two turns of the event loop: 64 KB of text at 16 tokens a block, below 2 ms with its tokens. */
const BLOCKS_PER_SLICE = 1024;
/** Steps between two turns, however short they are. */
const STEPS_PER_SLICE = 1024;
const NO_WORDS = new Int32Array(0);
/** A longer last step is remembered at once: encoding it again would cost more than filing it. */
const LAST_CHARS_MAX = 8192;

/** A prompt as words. */
export interface PromptChain {
  readonly words: number;
  readonly blocks: number;
  /** Shared with later prompts of the conversation: not to be written to or transferred. */
  readonly hashes: Int32Array;
  readonly end: ChainEnd;
}

export interface MemoLimits {
  readonly memoEntriesMax: number;
  readonly memoBytesMax: number;
}

/** What a prompt is made of. */
export interface PlannedPrompt {
  readonly scope: CacheScope;
  readonly steps: readonly WordStep[];
  /** Follows the last step and is not remembered: a generation prompt. */
  readonly tail: Int32Array;
  /** What the steps follow, where it is known; else they are all. */
  readonly begun?: BegunChat | undefined;
}

/** The same, and who waits for it. */
interface Rest extends PlannedPrompt {
  readonly source: WordSource;
  readonly asker: Asker;
}

/** Steps to block chains, through the memo of prefixes. */
export class PromptChains {
  readonly memo: PrefixMemo;
  readonly #roots: ScopeRoots;
  readonly #extender: ChainExtender;
  readonly #sliceWords: number;
  readonly #sightings = new Sightings();
  /** Most prompts have the scope of the one before. */
  #lastScope: CacheScope = { model: "", salt: "" };
  #lastKey = scopeKey(this.#lastScope);

  constructor(hasher: BlockHasher, roots: ScopeRoots, limits: MemoLimits) {
    this.#roots = roots;
    this.#extender = new ChainExtender(hasher);
    this.#sliceWords = BLOCKS_PER_SLICE * hasher.blockWords;
    this.memo = new PrefixMemo(limits.memoEntriesMax, limits.memoBytesMax, rootState(new Int32Array(8)));
  }

  get blockWords(): number {
    return this.#extender.blockWords;
  }

  /**
   * A last step is not remembered at its first sight: most are followed by an answer and asked for once more, as a step in
   * the middle, which costs less than to file each. Undefined where the source cannot do it. Linear in the steps and their
   * text; more than a slice of it goes in turns.
   */
  encode(
    prompt: PlannedPrompt,
    source: WordSource,
    asker: Asker = STAYS,
  ): PromptChain | undefined | Promise<PromptChain | undefined> {
    const { scope, steps, tail, begun } = prompt;
    let node = begun?.node ?? this.#rootNode(scope);
    this.memo.hits += begun?.messages ?? 0;
    let fresh = 0;
    for (let at = 0; at < steps.length; at++) {
      if (at >= STEPS_PER_SLICE) return this.#encodeSlowly(node, at, undefined, { ...prompt, source, asker });
      const step = steps[at]!;
      const known = this.#recall(node, step);
      if (known !== undefined) {
        node = known;
        continue;
      }
      const isKept = at + 1 < steps.length || this.#isKept(node, step);
      const words = source.words(step, isKept, asker);
      if (words instanceof Promise || fresh > this.#sliceWords || (words?.length ?? 0) > this.#sliceWords) {
        return this.#encodeSlowly(node, at, { words }, { ...prompt, source, asker });
      }
      if (words === undefined) {
        this.memo.touch(node);
        return undefined;
      }
      if (!isKept) {
        this.memo.touch(node);
        return this.#finish(node.state, words, tail);
      }
      fresh += words.length;
      node = this.memo.add(node, step.tag, ownText(step), this.#extender.extend(node.state, words, 0, words.length));
    }
    this.memo.touch(node);
    return this.#finish(node.state, NO_WORDS, tail);
  }

  /** Where the chain of the first `count` steps stands, as far as the memo has it. */
  nodeBehind(scope: CacheScope, steps: readonly WordStep[], count: number): MemoNode | undefined {
    let node = this.memo.find(this.memo.top, "", this.#keyOf(scope));
    for (let at = 0; at < count && node !== undefined; at++) {
      const { tag, text } = steps[at]!;
      node = this.memo.find(node, tag, text);
    }
    return node;
  }

  /** A prompt that arrived as token ids, which no conversation is known of. */
  encodeWords(scope: CacheScope, words: Int32Array, asker: Asker = STAYS): PromptChain | Promise<PromptChain> {
    const root = rootState(this.#roots.root(scope));
    if (words.length > this.#sliceWords)
      return this.#extendSlowly(root, words, asker).then((state) => this.#finish(state, NO_WORDS, NO_WORDS));
    return this.#finish(root, words, NO_WORDS);
  }

  #rootNode(scope: CacheScope): MemoNode {
    const key = this.#keyOf(scope);
    const { memo } = this;
    return memo.find(memo.top, "", key) ?? memo.add(memo.top, "", key, rootState(this.#roots.root(scope)));
  }

  #keyOf(scope: CacheScope): string {
    const { model, salt } = this.#lastScope;
    if (scope.model === model && scope.salt === salt) return this.#lastKey;
    this.#lastScope = scope;
    return (this.#lastKey = scopeKey(scope));
  }

  #recall(parent: MemoNode, step: WordStep): MemoNode | undefined {
    const known = this.memo.find(parent, step.tag, step.text);
    if (known === undefined) this.memo.misses++;
    else this.memo.hits++;
    return known;
  }

  /**
   * From step `first` on, whose words may be there already. The path is touched at its beginning and its end alone, or
   * each step would cost all before it.
   */
  async #encodeSlowly(
    start: MemoNode,
    first: number,
    firstWords: { readonly words: Words } | undefined,
    { steps, tail, source, asker }: Rest,
  ): Promise<PromptChain | undefined> {
    this.memo.touch(start);
    let node = start;
    let produced = firstWords;
    let left = 0;
    for (let at = first; at < steps.length; at++) {
      if (left <= 0 && produced === undefined) {
        await loopTurn(asker);
        left = this.#sliceWords;
      }
      left -= this.#sliceWords / STEPS_PER_SLICE;
      const step = steps[at]!;
      const known = produced === undefined ? this.#recall(node, step) : undefined;
      if (known !== undefined) {
        node = known;
        continue;
      }
      produced ??= { words: source.words(step, true, asker) };
      const words = produced.words instanceof Promise ? await produced.words : produced.words;
      if (words === undefined) return undefined;
      const state = await this.#extend(node.state, words, produced.words instanceof Promise, asker);
      left -= words.length;
      produced = undefined;
      node = this.memo.add(node, step.tag, ownText(step), state);
      this.memo.trim();
    }
    this.memo.touch(node);
    return this.#finish(node.state, NO_WORDS, tail);
  }

  /** `areOurs` false: the source writes to the array again as soon as another request runs. */
  #extend(state: ChainState, words: Int32Array, areOurs: boolean, asker: Asker): ChainState | Promise<ChainState> {
    if (words.length <= this.#sliceWords) return this.#extender.extend(state, words, 0, words.length);
    return this.#extendSlowly(state, areOurs ? words : words.slice(), asker);
  }

  async #extendSlowly(start: ChainState, words: Int32Array, asker: Asker): Promise<ChainState> {
    let state = start;
    for (let from = 0; from < words.length; from += this.#sliceWords) {
      await loopTurn(asker);
      state = this.#extender.extend(state, words, from, Math.min(from + this.#sliceWords, words.length));
    }
    return state;
  }

  /** Whether a last step is to be remembered. */
  #isKept({ state }: MemoNode, { text }: WordStep): boolean {
    return text.length > LAST_CHARS_MAX || this.#sightings.note(text, state.carry[0]!);
  }

  #finish(state: ChainState, words: Int32Array, tail: Int32Array): PromptChain {
    const { hashes, end } = this.#extender.finish(state, words, tail);
    return { words: state.words + words.length + tail.length, blocks: hashes.length / 2, hashes, end };
  }
}

/** A string that shares no memory with another. */
function ownText(step: WordStep): string {
  return step.isSlice === true ? String(JSON.parse(JSON.stringify(step.text))) : step.text;
}

/** Where the chain of a chat's beginning stands. */
export interface BegunChat {
  readonly node: MemoNode;
  /** Messages of the beginning, each a step. */
  readonly messages: number;
  /** Of the last one. */
  readonly role: string;
}

interface Filed extends Omit<BegunChat, "node"> {
  readonly handle: NodeHandle;
  readonly scope: CacheScope;
}

/**
 * Beginnings of chats by the very array that holds their messages (`PromptSource.beginning`), so that a long chat costs no
 * walk through the messages that it had before: finding each in the memo compares its text, and of 70 messages of 400
 * characters that was a tenth of what a request cost. An entry lasts as long as its array, and keeps nothing that
 * the memo has dropped.
 */
export class BegunChats {
  readonly #chains: PromptChains;
  readonly #filed = new WeakMap<readonly ChatMessage[], Filed>();

  constructor(chains: PromptChains) {
    this.#chains = chains;
  }

  /**
   * What is to be encoded of a chat: all its steps, or those behind its beginning. `stepsBehind` makes the steps, one
   * for each message, of what follows where it is given something, or undefined where there are none; so is the answer
   * then.
   */
  plan(
    beginning: readonly ChatMessage[] | undefined,
    scope: CacheScope,
    stepsBehind: (begun: BegunChat | undefined) => WordStep[] | undefined,
  ): Pick<PlannedPrompt, "steps" | "begun"> | undefined {
    const known = beginning && this.#find(beginning, scope);
    const steps = stepsBehind(known);
    if (steps === undefined || beginning === undefined || known !== undefined) return steps && { steps, begun: known };
    const begun = this.#look(beginning, scope, steps);
    return { steps: steps.slice(begun?.messages), begun };
  }

  #find(beginning: readonly ChatMessage[], scope: CacheScope): BegunChat | undefined {
    const filed = this.#filed.get(beginning);
    if (filed === undefined || filed.scope.model !== scope.model || filed.scope.salt !== scope.salt) return undefined;
    const { handle, messages, role } = filed;
    return handle.node && { node: handle.node, messages, role };
  }

  /** What the memo has of it, filed for the chats that follow. */
  #look(beginning: readonly ChatMessage[], scope: CacheScope, steps: readonly WordStep[]): BegunChat | undefined {
    const { length: messages } = beginning;
    const node = this.#chains.nodeBehind(scope, steps, messages);
    if (node === undefined || messages === 0) return undefined;
    const { role } = beginning[messages - 1]!;
    this.#filed.set(beginning, { handle: this.#chains.memo.handle(node), messages, role, scope });
    return { node, messages, role };
  }
}
