import type { BlockChain } from "../prompt/block-chain.ts";
import { RecentMap } from "../recent-map.ts";
import type { RouteRequest } from "../request.ts";

/** Conversations remembered; the one that was longest silent goes first. */
const CONVERSATIONS_MAX = 65_536;

/**
 * Names the conversation of a request that names none. A turn continues the conversation whose last prompt is the
 * longest known prompt that this one starts with; one that continues none starts its own. A shared system prompt does
 * not join conversations, since it is nobody's whole prompt.
 */
export class SessionInference {
  /** Key of a prompt's last block → conversation. */
  readonly #conversations = new RecentMap<number, string>(CONVERSATIONS_MAX);
  #started = 0;

  /** The client's own session id, else the inferred one, which starts with "~"; "" for a prompt below one block. */
  sessionOf(request: RouteRequest): string {
    if (request.session !== "") return request.session;
    const { blocks } = request;
    if (blocks.length === 0) return "";
    const session = this.#continued(blocks) ?? `~${this.#started++}`;
    this.#conversations.set(blockKey(blocks, blocks.length - 1), session);
    return session;
  }

  #continued(blocks: BlockChain): string | undefined {
    for (let i = blocks.length - 1; i >= 0; i--) {
      const session = this.#conversations.get(blockKey(blocks, i));
      if (session !== undefined) return session;
    }
    return undefined;
  }
}

/** 53 bits of a block's hash. */
function blockKey({ lanes }: BlockChain, block: number): number {
  return (lanes[2 * block]! >>> 0) * 0x20_0000 + (lanes[2 * block + 1]! >>> 11);
}
