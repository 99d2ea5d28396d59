import { DualIndex } from "#core/prefix/dual-index.ts";
import type { Insertion, PrefixIndex } from "#core/prefix/prefix-index.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";

/** An index of endpoints whose engines all report their blocks from the start, to prompts of the engines' own tokens. */
export class ReportedEndpoints extends DualIndex implements PrefixIndex {
  override join(endpoint: string, capacityBlocks: number): number {
    const slot = super.join(endpoint, capacityBlocks);
    this.followed(slot, true);
    return slot;
  }

  override match(chain: BlockChain, hits: Int32Array): void {
    super.match(chain, hits, true);
  }

  override insert(slot: number, chain: BlockChain): Insertion {
    return super.insert(slot, chain, true);
  }
}
