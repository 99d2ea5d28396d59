import type { BlockChain } from "../prompt/block-chain.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { RouteRequest } from "../request/request.ts";

/** Conversations remembered; the one that was longest silent goes first. */
const CONVERSATIONS_MAX = 65_536;

/** Bits of the table that rules out all but one block in 250 at once: 256 KiB. */
const FILTER_BITS = 2 ** 21;
/** Before the first prompt: many routers of simulations infer nothing. */
const NO_FILTER = new Int32Array(0);

/**
 * Names the conversation of a request that names none. A turn continues the conversation whose last prompt is the
 * longest known prompt that this one starts with; one that continues none starts its own. A shared system prompt does
 * not join conversations, since it is nobody's whole prompt.
 */
export class SessionInference {
  /** Key of a prompt's last block → conversation. */
  readonly #conversations: RecentMap<number, string>;
  /** Two bits per key of `#conversations`; other keys share bits with them, and a clear bit is proof of absence. */
  #filter = NO_FILTER;
  readonly #remembered: ((key: number, first: number) => void) | undefined;

  /** `remembered` is notified of every prompt's end with its conversation's key, for `restore` after a restart. */
  constructor(
    conversationsMax: number = CONVERSATIONS_MAX,
    remembered?: (prompt: number, conversation: number) => void,
  ) {
    this.#conversations = new RecentMap(conversationsMax);
    this.#remembered = remembered;
  }

  /**
   * The client's own session id, else the inferred one; "" for a prompt below one block. An inferred one is named by the
   * prompt that it began with, so that two routers, and one before and after a restart, name it alike.
   */
  sessionOf(request: RouteRequest): string {
    if (request.session !== "") return request.session;
    const { blocks } = request;
    if (blocks.length === 0) return "";
    const key = blockKey(blocks, blocks.length - 1);
    const session = this.#continued(blocks) ?? sessionNamed(key);
    this.#remember(key, session);
    this.#remembered?.(key, keyOfSession(session));
    return session;
  }

  /** What `remembered` was notified of, in turn: a prompt's end and its conversation, the latest last. */
  restore(keys: readonly number[]): void {
    for (let i = 0; i + 1 < keys.length; i += 2) this.#remember(keys[i]!, sessionNamed(keys[i + 1]!));
  }

  /** From the end, a bit test per block and a look at the map for the few that pass it. */
  #continued(blocks: BlockChain): string | undefined {
    const { hashes } = blocks;
    const filter = this.#filter;
    for (let i = blocks.length - 1; i >= 0; i--) {
      const high = hashes[2 * i + 1]!;
      if ((filter[high >>> 16]! & (1 << (high >>> 11))) === 0) continue;
      const low = hashes[2 * i]!;
      if ((filter[low >>> 16]! & (1 << (low >>> 11))) === 0) continue;
      const session = this.#conversations.get(blockKey(blocks, i));
      if (session !== undefined) return session;
    }
    return undefined;
  }

  #remember(key: number, session: string): void {
    if (this.#filter === NO_FILTER) this.#filter = new Int32Array(FILTER_BITS / 32);
    const before = this.#conversations.size;
    this.#conversations.set(key, session);
    if (this.#conversations.size < before) {
      this.#filter.fill(0);
      for (const kept of this.#conversations.keys()) this.#mark(kept);
    } else this.#mark(key);
  }

  #mark(key: number): void {
    for (const bit of [key % FILTER_BITS, Math.floor(key / FILTER_BITS) >>> 11]) this.#filter[bit >>> 5]! |= 1 << bit;
  }
}

function sessionNamed(key: number): string {
  return `~${key.toString(36)}`;
}

function keyOfSession(session: string): number {
  return parseInt(session.slice(1), 36);
}

/** 53 bits of a block's hash; 21 of each word are a bit that stands for it in the filter. */
function blockKey({ hashes }: BlockChain, block: number): number {
  return (hashes[2 * block]! >>> 0) * FILTER_BITS + (hashes[2 * block + 1]! >>> 11);
}
