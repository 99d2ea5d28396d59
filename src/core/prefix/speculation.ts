import { EMPTY_CHAIN, type BlockChain } from "../prompt/block-chain.ts";
import type { Micros } from "../base/units.ts";
import type { Insertion } from "./prefix-index.ts";

/** A prompt that is on its way into an engine's cache. */
export class Speculation implements Insertion {
  readonly slot: number;
  readonly insertion: Insertion;
  readonly at: Micros;
  chain: BlockChain;
  /** When its first token was seen; -1 before. */
  begunAt: Micros = -1;
  /** Some of its blocks were not reported by then. */
  unreported = false;
  ended = false;

  constructor(slot: number, insertion: Insertion, chain: BlockChain, at: Micros) {
    this.slot = slot;
    this.insertion = insertion;
    this.chain = chain;
    this.at = at;
  }

  /** It holds no chain any more. */
  retire(): void {
    this.ended = true;
    this.chain = EMPTY_CHAIN;
  }
}
