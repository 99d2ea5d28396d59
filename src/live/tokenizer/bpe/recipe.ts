import type { ComponentJson, TokenizerJson } from "./tokenizer-json.ts";

/** A byte-level BPE that the own encoder can do: what differs between the families. */
export interface Recipe {
  /** Digits of one number piece: 1 for Qwen, 3 for Llama 3. */
  readonly digits: 1 | 3;
  /** Text is composed (Unicode NFC) first. */
  readonly composes: boolean;
  /** A piece that is in the vocabulary is its token, whatever the merges would make of it. */
  readonly ignoreMerges: boolean;
}

const PATTERN_HEAD = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|";
const PATTERN_TAIL = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const DIGITS_BY_PATTERN: ReadonlyMap<string, 1 | 3> = new Map([
  [`${PATTERN_HEAD}\\p{N}${PATTERN_TAIL}`, 1],
  [`${PATTERN_HEAD}\\p{N}{1,3}${PATTERN_TAIL}`, 3],
]);

/** The recipe, or why the own encoder cannot do this file. */
export function readRecipe(json: TokenizerJson): Recipe | string {
  const digits = digitsOf(json.pre_tokenizer);
  if (digits === undefined) return "its pre-tokenizer is not that of Llama 3 or Qwen";
  const composes = composesOf(json.normalizer);
  if (composes === undefined) return `its normalizer is ${json.normalizer?.type ?? "missing"}, not NFC or none`;
  const { model } = json;
  if (model.type !== "BPE") return `its model is ${model.type}, not BPE`;
  for (const field of ["dropout", "unk_token", "byte_fallback", "fuse_unk"]) {
    if (model[field] !== undefined && model[field] !== null && model[field] !== false) return `its model sets ${field}`;
  }
  for (const field of ["continuing_subword_prefix", "end_of_word_suffix"]) {
    if (model[field] !== undefined && model[field] !== null && model[field] !== "") return `its model sets ${field}`;
  }
  for (const token of json.added_tokens) {
    for (const flag of ["single_word", "lstrip", "rstrip", "normalized"] as const) {
      if (token[flag]) return `its added token ${token.id} has the flag ${flag}`;
    }
  }
  return { digits, composes, ignoreMerges: model["ignore_merges"] === true };
}

function composesOf(normalizer: ComponentJson | null): boolean | undefined {
  if (normalizer === null) return false;
  return normalizer.type === "NFC" ? true : undefined;
}

function digitsOf(preTokenizer: ComponentJson | null): 1 | 3 | undefined {
  const steps = preTokenizer?.type === "Sequence" ? preTokenizer["pretokenizers"] : undefined;
  if (!Array.isArray(steps) || steps.length !== 2) return undefined;
  const [split, bytes] = steps as [Record<string, unknown>, Record<string, unknown>];
  if (split["type"] !== "Split" || split["behavior"] !== "Isolated" || split["invert"] === true) return undefined;
  if (bytes["type"] !== "ByteLevel" || bytes["add_prefix_space"] !== false || bytes["use_regex"] !== false)
    return undefined;
  const pattern = split["pattern"];
  if (typeof pattern !== "object" || pattern === null || !("Regex" in pattern)) return undefined;
  return typeof pattern.Regex === "string" ? DIGITS_BY_PATTERN.get(pattern.Regex) : undefined;
}
