import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { isFields } from "../base/fields.ts";
import type { KeptStream } from "./kept-stream.ts";

/** Longest that an engine may take to write a few tokens as text. */
const MILLIS_MAX = 2_000;
/** Tokens that can be held back: a character's bytes but the last. */
const HELD_BACK_MAX = 3;

/**
 * Finds the seam of a stream whose last tokens may have text that did not go out: what it is, and whether the last of them
 * end inside a character, the engine that is to go on is asked (vLLM's `/detokenize`). False where it does not answer, or
 * they are no text.
 */
export async function settleSeam(entry: EndpointEntry, model: string, kept: KeptStream): Promise<boolean> {
  const tokens = kept.unsettled;
  if (tokens === undefined) return true;
  for (let heldBack = 0; heldBack <= HELD_BACK_MAX && heldBack < tokens.length; heldBack++) {
    const text = await textOf(entry, model, tokens.subarray(0, tokens.length - heldBack));
    if (text === undefined) return false;
    if (text.endsWith(REPLACEMENT)) continue;
    return kept.settle(heldBack, text);
  }
  return false;
}

const REPLACEMENT = "\ufffd";

async function textOf({ url, apiKey }: EndpointEntry, model: string, tokens: Int32Array): Promise<string | undefined> {
  try {
    const answer = await fetch(`${url}/detokenize`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      body: JSON.stringify({ model, tokens: [...tokens] }),
      signal: AbortSignal.timeout(MILLIS_MAX),
    });
    const body: unknown = answer.ok ? await answer.json() : undefined;
    return isFields(body) && typeof body["prompt"] === "string" ? body["prompt"] : undefined;
  } catch {
    return undefined;
  }
}
