import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { BlocksStored, RequestArrived } from "#core/input/input.ts";

/** Requests whose last blocks are remembered at once; of more nothing is learned by blocks. */
const OPEN_MAX = 16_384;

/**
 * Learns where requests went from the blocks that engines report: whoever stores the last full block of a prompt had that
 * prompt. Where several open requests end with the same block, or an engine had it already, it shows nothing.
 */
export class BlocksLearner {
  readonly #byBlock = new Map<number, Set<string>>();
  readonly #open = new Map<string, number>();

  arrived({ request: { id, blocks, promptTokensExact } }: RequestArrived): void {
    if (!promptTokensExact || blocks.length === 0 || this.#open.size >= OPEN_MAX) return;
    const key = keyAt(blocks.hashes, blocks.length - 1);
    this.#open.set(id, key);
    const others = this.#byBlock.get(key);
    if (others === undefined) this.#byBlock.set(key, new Set([id]));
    else others.add(id);
  }

  /** Its place is known, or it is over. */
  forget(requestId: string): void {
    const key = this.#open.get(requestId);
    if (key === undefined) return;
    this.#open.delete(requestId);
    const others = this.#byBlock.get(key);
    others?.delete(requestId);
    if (others?.size === 0) this.#byBlock.delete(key);
  }

  /** Calls back with each request of which this is known now. */
  stored({ endpoint, hashes, medium }: BlocksStored, found: (requestId: string, endpoint: EndpointId) => void): void {
    // What goes to the host's memory was on the device before.
    if (medium !== undefined || this.#open.size === 0) return;
    for (let block = 0; 2 * block < hashes.length; block++) {
      const ids = this.#byBlock.get(keyAt(hashes, block));
      const [requestId] = ids?.size === 1 ? ids : [];
      if (requestId === undefined) continue;
      this.forget(requestId);
      found(requestId, endpoint);
    }
  }
}

/** 53 of a block's 64 bits: as many as a number has. */
function keyAt(hashes: Int32Array, block: number): number {
  return (hashes[2 * block]! >>> 0) * 2_097_152 + (hashes[2 * block + 1]! >>> 11);
}
