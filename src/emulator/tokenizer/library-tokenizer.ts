import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Tokenizer as NativeTokenizer } from "tokenizers";
import type { Random } from "#core/base/random.ts";
import { isObject, type JsonObject } from "../http/body.ts";
import type { ChatPrompt } from "./chat-prompt.ts";
import { PromptTemplate } from "./chat-template.ts";
import { TokenText } from "./token-text.ts";
import type { Piece, EngineTokenizer } from "./tokenizer.ts";

/** A Hugging Face tokenizer: its `tokenizer.json`, and the file that holds the chat template. */
export interface LibraryTokenizerFiles {
  readonly tokenizerPath: string;
  /** `tokenizer_config.json`, or a file that is the template itself. */
  readonly templatePath: string;
}

/** Words that answers are made of, of either kind. */
const PIECES_MAX = 2_048;

interface Words {
  /** Capitalised, without a space in front. */
  readonly first: readonly Piece[];
  /** With a space in front. */
  readonly later: readonly Piece[];
}

/** A real tokenizer and chat template, so that cached tokens are those of a real model's blocks. Encodes off the thread. */
export class LibraryTokenizer implements EngineTokenizer {
  readonly name = "huggingface";
  readonly endToken: number;
  readonly headerEnd: number | undefined;
  readonly #native: NativeTokenizer;
  readonly #template: PromptTemplate;
  readonly #texts: TokenText;
  readonly #words: Words;

  private constructor(native: NativeTokenizer, template: PromptTemplate, texts: TokenText, words: Words) {
    this.#native = native;
    this.#template = template;
    this.#texts = texts;
    this.#words = words;
    this.headerEnd = native.tokenToId("<|end_header_id|>") ?? undefined;
    this.endToken = native.tokenToId(template.endText) ?? 0;
  }

  /** Rejects with an Error that names the file which cannot be used. */
  static async load({ tokenizerPath, templatePath }: LibraryTokenizerFiles): Promise<LibraryTokenizer> {
    const native = await readTokenizer(tokenizerPath);
    const config = await readConfig(templatePath, tokenizerPath);
    const template = new PromptTemplate(config.template, config.fields, templatePath);
    if (native.tokenToId(template.endText) === null) {
      throw new Error(`${templatePath}: eos_token ${JSON.stringify(template.endText)} is not in ${tokenizerPath}`);
    }
    const texts = new TokenText(native);
    const words = {
      first: await stableWords(native, texts, /^[A-Z][a-z]{2,8}$/),
      later: await stableWords(native, texts, /^ [a-z]{2,8}$/),
    };
    if (words.first.length === 0 || words.later.length === 0)
      throw new Error(`${tokenizerPath}: has no words that encode to one token`);
    return new LibraryTokenizer(native, template, texts, words);
  }

  async encode(text: string): Promise<Int32Array> {
    const encoding = await this.#native.encode(text, null, { addSpecialTokens: true });
    return Int32Array.from(encoding.getIds());
  }

  async encodeChat(prompt: ChatPrompt): Promise<Int32Array> {
    const encoding = await this.#native.encode(this.#template.render(prompt), null, { addSpecialTokens: false });
    return Int32Array.from(encoding.getIds());
  }

  has(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < 2 ** 31 && this.#native.idToToken(token) !== null;
  }

  decode(token: number): string {
    return this.#texts.decode(token);
  }

  spell(token: number): string {
    return this.#native.idToToken(token) ?? "";
  }

  draw(random: Random, first: boolean): Piece {
    const words = first ? this.#words.first : this.#words.later;
    return words[random.below(words.length)] as Piece;
  }

  async pieces(text: string): Promise<readonly Piece[]> {
    const encoding = await this.#native.encode(text, null, { addSpecialTokens: false });
    return encoding.getIds().map((id) => ({ id, text: this.decode(id) }));
  }
}

async function readTokenizer(path: string): Promise<NativeTokenizer> {
  const text = await readFile(path, "utf8");
  try {
    return NativeTokenizer.fromString(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unreadable";
    throw new Error(`${path}: is no tokenizer.json: ${reason}`, { cause: error });
  }
}

/** The template, and the configuration beside it that names the special tokens. */
async function readConfig(
  templatePath: string,
  tokenizerPath: string,
): Promise<{ readonly template: string; readonly fields: JsonObject }> {
  if (!templatePath.endsWith(".json")) {
    const beside = join(dirname(tokenizerPath), "tokenizer_config.json");
    return { template: await readFile(templatePath, "utf8"), fields: await readObject(beside) };
  }
  const fields = await readObject(templatePath);
  const { chat_template: template } = fields;
  if (typeof template === "string") return { template, fields };
  const named = Array.isArray(template) ? template.filter(isObject) : [];
  const chosen = named.find((one) => one["name"] === "default") ?? named[0];
  if (typeof chosen?.["template"] === "string") return { template: chosen["template"], fields };
  throw new Error(`${templatePath}: has no chat_template`);
}

async function readObject(path: string): Promise<JsonObject> {
  const value: unknown = JSON.parse(await readFile(path, "utf8"));
  if (!isObject(value)) throw new Error(`${path}: is not a JSON object`);
  return value;
}

/** Words of a pattern that encode to the one token they are, wherever they stand. */
async function stableWords(native: NativeTokenizer, texts: TokenText, pattern: RegExp): Promise<readonly Piece[]> {
  const words = Object.values(native.getVocab(false))
    .sort((a, b) => a - b)
    .map((id) => ({ id, text: texts.decode(id) }))
    .filter(({ text }) => pattern.test(text))
    .slice(0, PIECES_MAX);
  const encodings = await native.encodeBatch(
    words.map(({ text }) => text),
    { addSpecialTokens: false },
  );
  return words.filter(({ id }, index) => {
    const ids = encodings[index]?.getIds() ?? [];
    return ids.length === 1 && ids[0] === id;
  });
}
