import type { Asker } from "../../base/loop-turn.ts";

/** One step of a prompt: usually a message. Equal steps after equal steps are equal prompts. */
export interface WordStep {
  /** What the words depend on besides the text: the role, and for a template the role before it. */
  readonly tag: string;
  readonly text: string;
  /** The text is part of a larger one, which would be kept alive with it. */
  readonly isSlice?: boolean;
}

export type Words = Int32Array | undefined | Promise<Int32Array | undefined>;

/** Turns steps into the 32-bit words that blocks are cut from: token ids, or packed bytes. */
export interface WordSource {
  /**
   * The words of one step, by itself. An array that is answered at once is the caller's until the next call, a promised
   * one for good. A promise where the work is large or done elsewhere; it does not block the event loop meanwhile.
   * Undefined where the source cannot do it. `comesAgain` false: the step is not expected again as it is. What is
   * promised rejects with AskerLeft once nobody waits for it.
   */
  words(step: WordStep, comesAgain: boolean, asker: Asker): Words;
}
