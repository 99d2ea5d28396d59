import { type Asker, loopTurn } from "../base/loop-turn.ts";
import type { AddedTokens } from "./bpe/added-tokens.ts";
import type { WordStep } from "./text/word-source.ts";

/** A step is cut only from this length on, so that a prompt full of special tokens has no more steps than it is worth. */
const STEP_CHARS_MIN = 256;
/** Characters looked through at once, 1 ms at most. */
const CHARS_PER_SLICE = 1 << 16;

/** Tag of a step that is encoded as it stands. */
export const VERBATIM = "";

/**
 * Cuts a rendered prompt before special tokens, where its parts are encoded independently. Where it is cut depends only
 * on what came before, so a prompt that grows keeps its cuts. A long one is cut in turns.
 */
export function promptSteps(text: string, cuts: AddedTokens, asker: Asker): WordStep[] | Promise<WordStep[]> {
  const cutter = new Cutter(text, cuts);
  if (text.length > CHARS_PER_SLICE) return inTurns(cutter, asker);
  cutter.advance(text.length);
  return cutter.steps();
}

async function inTurns(cutter: Cutter, asker: Asker): Promise<WordStep[]> {
  do await loopTurn(asker);
  while (!cutter.advance(CHARS_PER_SLICE));
  return cutter.steps();
}

class Cutter {
  readonly #text: string;
  readonly #cuts: AddedTokens;
  readonly #steps: WordStep[] = [];
  #from = 0;
  #looked = 0;

  constructor(text: string, cuts: AddedTokens) {
    this.#text = text;
    this.#cuts = cuts;
  }

  /** Looks through so many characters more; true when the text is at its end. */
  advance(characters: number): boolean {
    const text = this.#text;
    const until = Math.min(text.length, this.#looked + characters);
    for (;;) {
      const match = this.#cuts.find(text, this.#looked, until);
      if (match === undefined) break;
      this.#looked = match.start + match.content.length;
      if (match.start - this.#from < STEP_CHARS_MIN) continue;
      this.#steps.push({ tag: VERBATIM, text: text.slice(this.#from, match.start), isSlice: true });
      this.#from = match.start;
    }
    this.#looked = Math.max(this.#looked, until);
    return this.#looked >= text.length;
  }

  steps(): WordStep[] {
    const text = this.#text;
    const rest =
      this.#from === 0 ? { tag: VERBATIM, text } : { tag: VERBATIM, text: text.slice(this.#from), isSlice: true };
    return [...this.#steps, rest];
  }
}
