/** The parts of a Hugging Face tokenizer.json that are read here. */
export interface TokenizerJson {
  readonly added_tokens: readonly AddedTokenJson[];
  readonly normalizer: ComponentJson | null;
  readonly pre_tokenizer: ComponentJson | null;
  readonly post_processor: ComponentJson | null;
  readonly model: ModelJson;
}

/** A normalizer, pre-tokenizer or post-processor: its type, and fields of its own. */
export type ComponentJson = Readonly<Record<string, unknown>> & { readonly type: string };

export interface AddedTokenJson {
  readonly id: number;
  readonly content: string;
  readonly single_word: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  readonly normalized: boolean;
  readonly special: boolean;
}

export type ModelJson = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly vocab: unknown;
};

/** Throws an error that states what is wrong with the text, without naming its file. */
export function parseTokenizerJson(text: string): TokenizerJson {
  const root = record(parse(text), "the file");
  const model = record(root["model"], "model");
  // Files written before the field was do without it.
  const type = typeof model["type"] === "string" ? model["type"] : "BPE";
  if (model["vocab"] === undefined) throw new Error("model.vocab: expected a vocabulary, got nothing");
  const added = root["added_tokens"] ?? [];
  if (!Array.isArray(added)) throw new Error("added_tokens: expected an array");
  return {
    added_tokens: added.map(addedToken),
    normalizer: component(root["normalizer"], "normalizer"),
    pre_tokenizer: component(root["pre_tokenizer"], "pre_tokenizer"),
    post_processor: component(root["post_processor"], "post_processor"),
    model: { ...model, type, vocab: model["vocab"] },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("expected JSON as the tokenizers library writes it");
  }
}

function addedToken(value: unknown, index: number): AddedTokenJson {
  const path = `added_tokens[${index}]`;
  const token = record(value, path);
  const { id, content } = token;
  if (typeof id !== "number" || !Number.isInteger(id)) throw new Error(`${path}.id: expected an integer`);
  if (typeof content !== "string") throw new Error(`${path}.content: expected a string`);
  return {
    id,
    content,
    single_word: token["single_word"] === true,
    lstrip: token["lstrip"] === true,
    rstrip: token["rstrip"] === true,
    normalized: token["normalized"] === true,
    special: token["special"] === true,
  };
}

function component(value: unknown, path: string): ComponentJson | null {
  if (value === undefined || value === null) return null;
  const fields = record(value, path);
  if (typeof fields["type"] !== "string") throw new Error(`${path}.type: expected a string`);
  return { ...fields, type: fields["type"] };
}

function record(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`${path}: expected an object`);
}
