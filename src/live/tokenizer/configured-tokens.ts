const FLAGS = ["single_word", "lstrip", "rstrip", "normalized", "special"] as const;

type Fields = Readonly<Record<string, unknown>>;

/**
 * The tokenizer.json with the added tokens of a tokenizer_config.json, which the engine's loader adds to it and whose
 * flags count. The text as it was where they say the same; what is no tokenizer.json is left for its reader to refuse.
 */
export function withConfiguredTokens(tokenizerText: string, decoder: unknown): string {
  if (!isFields(decoder)) return tokenizerText;
  const root = parse(tokenizerText);
  const listed = root?.["added_tokens"];
  if (root === undefined || !Array.isArray(listed)) return tokenizerText;
  const byContent = new Map((listed as Fields[]).map((token) => [token["content"], token]));
  let changed = false;
  for (const [id, token] of Object.entries(decoder)) {
    if (!isFields(token) || typeof token["content"] !== "string") continue;
    const known = byContent.get(token["content"]);
    if (known !== undefined && FLAGS.every((flag) => (known[flag] === true) === (token[flag] === true))) continue;
    const flags = Object.fromEntries(FLAGS.map((flag) => [flag, token[flag] === true]));
    byContent.set(token["content"], { id: known?.["id"] ?? Number(id), content: token["content"], ...flags });
    changed = true;
  }
  if (!changed) return tokenizerText;
  const added = [...byContent.values()].sort((a, b) => Number(a["id"]) - Number(b["id"]));
  return JSON.stringify({ ...root, added_tokens: added });
}

function parse(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
