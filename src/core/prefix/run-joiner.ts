import type { BlockChain } from "../prompt/block-chain.ts";
import { type BlockRuns, NO_RUN, NOWHERE } from "./block-runs.ts";
import { type HoldingPool, NO_HOLDING } from "./holding-pool.ts";
import { RUN_BLOCKS_MAX } from "./run-arena.ts";

/** Joins runs that follow each other: generated blocks arrive one by one, each in a run of its own. */
export class RunJoiner {
  readonly #runs: BlockRuns;
  readonly #holdings: HoldingPool;

  constructor(runs: BlockRuns, holdings: HoldingPool) {
    this.#runs = runs;
    this.#holdings = holdings;
  }

  /** Learns from a chain which runs follow each other, and joins those that the same endpoints hold whole. */
  learn(chain: BlockChain): void {
    const runs = this.#runs;
    let depth = 0;
    let before = NO_RUN;
    while (depth < chain.length) {
      const place = runs.find(chain.hashes, depth);
      if (place === NOWHERE || runs.positionAt(place) !== 0) return;
      const run = runs.runAt(place);
      const length = runs.length[run]!;
      if (runs.common(run, 0, chain.hashes, depth, Math.min(length, chain.length - depth)) < length) return;
      depth += length;
      if (before !== NO_RUN && runs.length[before]! + length <= RUN_BLOCKS_MAX && this.#sameHolders(before, run)) {
        this.#join(before, run);
      } else {
        before = run;
      }
    }
  }

  #sameHolders(run: number, next: number): boolean {
    const holdings = this.#holdings;
    if (holdings.countOf(run) !== holdings.countOf(next)) return false;
    for (let h = this.#runs.firstHolding[next]!; h !== NO_HOLDING; h = holdings.next[h]!) {
      if (holdings.blocks[h] !== this.#runs.length[next]) return false;
      const above = holdings.find(run, holdings.slot[h]!);
      if (above === NO_HOLDING || holdings.blocks[above] !== this.#runs.length[run]) return false;
    }
    return true;
  }

  #join(run: number, next: number): void {
    const holdings = this.#holdings;
    const { firstHolding } = this.#runs;
    for (let h = firstHolding[next]!; h !== NO_HOLDING; h = firstHolding[next]!) holdings.remove(h);
    this.#runs.merge(run, next);
    for (let h = firstHolding[run]!; h !== NO_HOLDING; h = holdings.next[h]!) {
      holdings.blocks[h] = this.#runs.length[run]!;
    }
  }
}
