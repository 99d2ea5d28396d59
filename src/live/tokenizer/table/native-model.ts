import type { Tokenizer as NativeTokenizer } from "tokenizers";
import { type Surround, surroundOf } from "./added-by-processor.ts";
import { type AddedTokenJson, parseTokenizerJson, type TokenizerJson } from "../bpe/tokenizer-json.ts";
import { isFields } from "../../base/fields.ts";

/** A tokenizer.json in the tokenizers library, which reads every family. */
export interface NativeModel {
  readonly json: TokenizerJson;
  readonly native: NativeTokenizer;
  /** A text has the same tokens wherever it stands: nothing is put before the first word. */
  readonly isPositionless: boolean;
  /** What the post-processor puts around a text; undefined where it changes the text's own tokens. */
  readonly surround: Surround | undefined;
}

/**
 * Throws an error that states what is wrong with the text, without naming its file. The library is loaded only now: a
 * gateway whose table was made before does without it, and without the 150 MB that a large vocabulary takes there.
 */
export async function loadNativeModel(tokenizerText: string, addedTokensDecoder: unknown): Promise<NativeModel> {
  const { Tokenizer } = await import("tokenizers");
  const listed = parseTokenizerJson(tokenizerText);
  const configured = configuredTokens(listed, addedTokensDecoder);
  const json = configured === undefined ? listed : { ...listed, added_tokens: configured };
  const native = Tokenizer.fromString(
    configured === undefined ? tokenizerText : withAddedTokens(tokenizerText, configured),
  );
  native.disableTruncation();
  native.disablePadding();
  const plain = await native.encode("a", null, { addSpecialTokens: false });
  const processed = await native.encode("a", null, { addSpecialTokens: true });
  return {
    json,
    native,
    isPositionless: !PREPENDS.test(JSON.stringify([json.normalizer, json.pre_tokenizer])),
    surround: surroundOf(plain.getIds(), processed.getIds()),
  };
}

/** What puts a space, or what stands for one, before a text. */
const PREPENDS = /"prepend_scheme":"(?:first|always)"|"add_prefix_space":true|"type":"Prepend"/;

function withAddedTokens(tokenizerText: string, added: readonly AddedTokenJson[]): string {
  const root = JSON.parse(tokenizerText) as Record<string, unknown>;
  return JSON.stringify({ ...root, added_tokens: added });
}

const FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"] as const;

/**
 * The added tokens with those of a tokenizer_config.json (added_tokens_decoder), which the engine's loader adds and whose
 * flags count; undefined where they say the same.
 */
function configuredTokens(json: TokenizerJson, decoder: unknown): AddedTokenJson[] | undefined {
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
