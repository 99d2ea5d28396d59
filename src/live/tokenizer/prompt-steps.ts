import type { AddedTokens } from "./bpe/added-tokens.ts";
import type { Step } from "./word-source.ts";

/** A step is cut only from this length on, so that a prompt full of special tokens has no more steps than it is worth. */
const STEP_CHARS_MIN = 256;

/** Tag of a step that is encoded as it stands. */
export const VERBATIM = "";

/**
 * Cuts a rendered prompt before special tokens, where its parts are encoded independently. Where it is cut depends only
 * on what came before, so a prompt that grows keeps its cuts.
 */
export function promptSteps(text: string, cuts: AddedTokens): Step[] {
  const steps: Step[] = [];
  let from = 0;
  for (
    let match = cuts.find(text, 0);
    match !== undefined;
    match = cuts.find(text, match.start + match.content.length)
  ) {
    if (match.start - from < STEP_CHARS_MIN) continue;
    steps.push({ tag: VERBATIM, text: text.slice(from, match.start), isSlice: true });
    from = match.start;
  }
  steps.push(from === 0 ? { tag: VERBATIM, text } : { tag: VERBATIM, text: text.slice(from), isSlice: true });
  return steps;
}
