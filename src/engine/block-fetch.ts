import type { Micros } from "#core/base/units.ts";

/** How the blocks of a prompt that another engine computed come to this one. The host knows the way between them. */
export interface BlockFetch {
  /**
   * Room is taken for them, and they set out: the last `tokens` tokens of the prompt, the ones before them being in the
   * cache here. Returns how long they take, at least 0.
   */
  begins(at: Micros, tokens: number): Micros;
  /** That time is over. Whether they came; where they did not, this engine computes them itself. */
  arrived(): boolean;
}

/** Blocks of a request that ended, which stay as they are until another engine has them. */
export interface Hold {
  /** Prompt tokens that they hold. */
  readonly tokens: number;
  /** Gives them back at `at`; they can be hit until they are overwritten. False where that was done before. */
  release(at: Micros): boolean;
}
