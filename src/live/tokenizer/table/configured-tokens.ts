import { isFields } from "../../base/fields.ts";
import type { AddedTokenJson, TokenizerJson } from "../bpe/tokenizer-json.ts";

const FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"] as const;

/**
 * The added tokens with those of a tokenizer_config.json (added_tokens_decoder), which the engine's loader adds and whose
 * flags count; undefined where they say the same.
 */
export function configuredTokens(json: TokenizerJson, decoder: unknown): AddedTokenJson[] | undefined {
  if (!isFields(decoder)) return undefined;
  const byContent = new Map(json.added_tokens.map((token) => [token.content, token]));
  let changed = false;
  for (const [id, token] of Object.entries(decoder)) {
    if (!isFields(token) || typeof token["content"] !== "string") continue;
    const { content } = token;
    const known = byContent.get(content);
    if (known !== undefined && FLAGS.every((flag) => known[flag] === (token[flag] === true))) continue;
    const flag = (name: (typeof FLAGS)[number]): boolean => token[name] === true;
    byContent.set(content, {
      id: known?.id ?? Number(id),
      content,
      single_word: flag("single_word"),
      lstrip: flag("lstrip"),
      rstrip: flag("rstrip"),
      normalized: flag("normalized"),
      special: flag("special"),
    });
    changed = true;
  }
  return changed ? [...byContent.values()].sort((a, b) => a.id - b.id) : undefined;
}
