import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import type { ParsedPrompt } from "./parse-prompt.ts";
import type { Fields } from "../base/fields.ts";
import type { TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";

/**
 * What the engine reads of a prompt whose client set vLLM's `truncate_prompt_tokens`. The prompt itself where nothing is
 * cut; else one that is no longer exact.
 *
 * With `truncation_side` "right" its beginning stays, and so do the blocks within it. Without that vLLM cuts on the left:
 * where it then begins depends on its length, so nothing that it shares with other prompts stands where theirs does. -1
 * cuts to the model's length, which is not known here. A value that vLLM refuses changes nothing.
 */
export function truncated(prompt: TokenizedPrompt, fields: Fields | undefined): TokenizedPrompt {
  const limit = limitIn(fields);
  if (limit === undefined) return prompt;
  if (limit === TO_MODEL_LENGTH) return { ...prompt, exact: false };
  if (prompt.exact && prompt.promptTokens <= limit) return prompt;
  const promptTokens = Math.min(limit, prompt.promptTokens);
  // An estimate may be too low, but where it is, the beginning is still the better guess.
  const uncut = promptTokens === prompt.promptTokens;
  const blocks = uncut ? prompt.blocks : fields?.["truncation_side"] === "right" ? leading(prompt, limit) : EMPTY_CHAIN;
  return { ...prompt, blocks, promptTokens, exact: false };
}

/**
 * Tokens of all prompts of a request, of whose first the engine reads `prompt`. The others are known by their length
 * together, as `scale` gives it, and each is cut like the first: exact where the limit is above all of them or below.
 */
export function tokensOfAll(
  whole: TokenizedPrompt,
  prompt: TokenizedPrompt,
  { count, scale }: Pick<ParsedPrompt, "count" | "scale">,
  fields: Fields | undefined,
): number {
  const limit = limitIn(fields) ?? TO_MODEL_LENGTH;
  if (limit === TO_MODEL_LENGTH || count === 1) return Math.round(prompt.promptTokens * scale);
  return Math.round(prompt.promptTokens + Math.min(whole.promptTokens * (scale - 1), limit * (count - 1)));
}

const TO_MODEL_LENGTH = -1;

/** Undefined where there is none, or one that vLLM refuses. */
function limitIn(fields: Fields | undefined): number | undefined {
  const limit = fields?.["truncate_prompt_tokens"];
  return typeof limit === "number" && Number.isSafeInteger(limit) && limit >= TO_MODEL_LENGTH ? limit : undefined;
}

function leading({ blocks }: TokenizedPrompt, tokens: number): TokenizedPrompt["blocks"] {
  const length = Math.min(blocks.length, Math.floor(tokens / blocks.blockTokens));
  return { hashes: blocks.hashes.subarray(0, 2 * length), length, blockTokens: blocks.blockTokens };
}
