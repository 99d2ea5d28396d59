import { assert } from "#core/base/assert.ts";
import type { ChainState } from "./text/chain-state.ts";
import type { MemoDescription } from "./described-tokenizer.ts";
import { textKey } from "./text-key.ts";

/** What a node costs besides its text and its hashes, the open block among it. */
const NODE_BYTES = 640;
/** A block's hash among those that states share, whose room is up to a quarter larger than what is in it. */
const SHARED_HASH_BYTES = 10;
/** Until so much of the bounds was added, a path is not marked as used again. */
const PERIOD_SHARE = 1 / 16;
/** Nodes under one key: the same text in different roles, or texts with the same sample. */
const SIBLINGS_MAX = 16;

/** A message at one place of a conversation: everything before it is its parent. */
export interface MemoNode {
  readonly tag: string;
  readonly text: string;
  readonly state: ChainState;
}

/** A node for as long as the memo has it: whoever keeps this keeps nothing that was evicted. */
export interface NodeHandle {
  readonly node: MemoNode | undefined;
}

class Node implements MemoNode {
  readonly parent: Node | undefined;
  readonly tag: string;
  readonly text: string;
  readonly state: ChainState;
  readonly bytes: number;
  linked = false;
  handle: { node: Node | undefined } | undefined = undefined;
  /** The child last seen, to be compared without hashing. */
  latest: Node | undefined = undefined;
  /** The child of a node with one, as most are; children by the key of their text from the second on. */
  only: Node | undefined = undefined;
  children: Map<string, Node> | undefined = undefined;
  /** The next child under the same key. */
  sibling: Node | undefined = undefined;
  newer: Node | undefined = undefined;
  older: Node | undefined = undefined;
  /** When it was marked as used last, and all before it with it. */
  period = 0;

  constructor(parent: Node | undefined, tag: string, text: string, state: ChainState) {
    this.parent = parent;
    this.tag = tag;
    this.text = text;
    this.state = state;
    const before = parent?.state;
    const isShared = state.hashes === before?.hashes;
    const hashes = isShared ? SHARED_HASH_BYTES * (state.blocks - before.blocks) : state.hashes.words.byteLength;
    this.bytes = NODE_BYTES + textBytes(text) + hashes;
  }
}

/**
 * Remembers, per prefix of messages, where its chain stands, so that a conversation costs what is new in it. A tree: a
 * path from a root is a conversation. Bounded in entries and bytes; the least recently used goes first, to a sixteenth
 * of the bounds: marking a path as used costs its length, and of long chats in turns was 2 us of a request. A node
 * always counts as used before its parent was, so that what goes is a leaf.
 */
export class PrefixMemo {
  readonly #entriesMax: number;
  readonly #bytesMax: number;
  readonly #top: Node;
  #newest: Node | undefined = undefined;
  #oldest: Node | undefined = undefined;
  #entries = 0;
  #bytes = 0;
  #period = 1;
  /** Added in this period. */
  #entriesAdded = 0;
  #bytesAdded = 0;
  hits = 0;
  misses = 0;
  evictions = 0;
  /** Places that changed in the order of use: what `touch` costs. */
  moves = 0;

  constructor(entriesMax: number, bytesMax: number, top: ChainState) {
    this.#entriesMax = entriesMax;
    this.#bytesMax = bytesMax;
    this.#top = new Node(undefined, "", "", top);
    this.#top.linked = true;
  }

  describe(): MemoDescription {
    const { hits, misses, evictions } = this;
    return { entries: this.#entries, bytes: this.#bytes, hits, misses, evictions };
  }

  /** The parent of all roots. */
  get top(): MemoNode {
    return this.#top;
  }

  /** The same one each time. */
  handle(node: MemoNode): NodeHandle {
    const of = node as Node;
    of.handle ??= { node: of.linked ? of : undefined };
    return of.handle;
  }

  find(parent: MemoNode, tag: string, text: string): MemoNode | undefined {
    const under = parent as Node;
    const latest = under.latest;
    if (latest?.tag === tag && latest.text === text) return latest;
    let child = under.children === undefined ? under.only : under.children.get(textKey(text));
    while (child !== undefined && (child.tag !== tag || child.text !== text)) child = child.sibling;
    if (child !== undefined) under.latest = child;
    return child;
  }

  /**
   * Files what follows `parent`, as used just before it. Bounds are kept by `touch` or `trim`, one of which must follow.
   * Answers the node already there, if another request was first.
   */
  add(parent: MemoNode, tag: string, text: string, state: ChainState): MemoNode {
    const under = parent as Node;
    const known = this.find(parent, tag, text);
    if (known !== undefined) return known;
    const node = new Node(under, tag, text, state);
    if (!under.linked || this.#entriesMax === 0 || node.bytes > this.#bytesMax) return node;
    if (!attach(under, node)) return node;
    under.latest = node;
    node.linked = true;
    this.#entries++;
    this.#bytes += node.bytes;
    this.#countAdded(node);
    if (under === this.#top) this.#push(node);
    else this.#pushBelow(under, node);
    node.period = under.period;
    return node;
  }

  /**
   * Marks a node and all before it as used in this period, then evicts what is over the bounds. Costs the length of the
   * path, once in a period.
   */
  touch(node: MemoNode): void {
    const isMarked = (node as Node).period === this.#period;
    for (let at = isMarked ? this.#top : (node as Node); at !== this.#top; at = at.parent!) {
      at.period = this.#period;
      if (!at.linked || this.#newest === at) continue;
      this.#unlink(at);
      this.#push(at);
      this.moves++;
    }
    this.trim();
  }

  /** Evicts what is over the bounds. */
  trim(): void {
    while (this.#entries > this.#entriesMax || this.#bytes > this.#bytesMax) this.#evict();
  }

  #countAdded({ bytes }: Node): void {
    this.#entriesAdded++;
    this.#bytesAdded += bytes;
    if (this.#entriesAdded <= PERIOD_SHARE * this.#entriesMax && this.#bytesAdded <= PERIOD_SHARE * this.#bytesMax)
      return;
    this.#period++;
    this.#entriesAdded = 0;
    this.#bytesAdded = 0;
  }

  #evict(): void {
    const leaf = this.#oldest;
    assert(leaf !== undefined, "a memo over its bound has an oldest node");
    assert(leaf.only === undefined && leaf.children === undefined, "the oldest node of the memo is a leaf");
    this.#unlink(leaf);
    leaf.linked = false;
    if (leaf.handle !== undefined) leaf.handle.node = undefined;
    this.#entries--;
    this.#bytes -= leaf.bytes;
    this.evictions++;
    detach(leaf.parent!, leaf);
  }

  #push(node: Node): void {
    node.older = this.#newest;
    node.newer = undefined;
    if (this.#newest !== undefined) this.#newest.newer = node;
    this.#newest = node;
    this.#oldest ??= node;
  }

  #pushBelow(parent: Node, node: Node): void {
    node.newer = parent;
    node.older = parent.older;
    if (parent.older === undefined) this.#oldest = node;
    else parent.older.newer = node;
    parent.older = node;
  }

  #unlink(node: Node): void {
    if (node.newer === undefined) this.#newest = node.older;
    else node.newer.older = node.older;
    if (node.older === undefined) this.#oldest = node.newer;
    else node.older.newer = node.newer;
    node.newer = undefined;
    node.older = undefined;
  }
}

/** What V8 keeps of it: a byte for each character, or two where any is beyond Latin 1. ASCII has as many bytes in UTF-8. */
function textBytes(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;
}

/** False where too many are under the same key. */
function attach(parent: Node, node: Node): boolean {
  if (parent.only === undefined && parent.children === undefined) {
    parent.only = node;
    return true;
  }
  if (parent.only !== undefined) {
    parent.children = new Map([[textKey(parent.only.text), parent.only]]);
    parent.only = undefined;
  }
  const children = parent.children!;
  const key = textKey(node.text);
  const first = children.get(key);
  if (siblings(first) >= SIBLINGS_MAX) return false;
  node.sibling = first;
  children.set(key, node);
  return true;
}

function detach(parent: Node, leaf: Node): void {
  if (parent.latest === leaf) parent.latest = undefined;
  const { children } = parent;
  if (children === undefined) {
    parent.only = undefined;
    return;
  }
  const key = textKey(leaf.text);
  const first = children.get(key)!;
  if (first !== leaf) {
    let before = first;
    while (before.sibling !== leaf) before = before.sibling!;
    before.sibling = leaf.sibling;
  } else if (leaf.sibling !== undefined) children.set(key, leaf.sibling);
  else if (children.size > 1) children.delete(key);
  else parent.children = undefined;
}

function siblings(first: Node | undefined): number {
  let count = 0;
  for (let at = first; at !== undefined; at = at.sibling) count++;
  return count;
}
