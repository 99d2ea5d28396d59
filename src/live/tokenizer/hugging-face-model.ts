import { Tokenizer as NativeTokenizer } from "tokenizers";
import { type Surround, surroundOf } from "./added-by-processor.ts";
import { BpeEncoder } from "./bpe/bpe-encoder.ts";
import { readRecipe } from "./bpe/recipe.ts";
import { selfCheck } from "./bpe/self-check.ts";
import { type AddedTokenJson, parseTokenizerJson, type TokenizerJson } from "./bpe/tokenizer-json.ts";
import { configuredTokens } from "./configured-tokens.ts";
import type { HuggingFaceFiles } from "./hugging-face-files.ts";
import { type LinearMessages, linearMessages } from "./linear-messages.ts";
import { NativeEncoder } from "./native-encoder.ts";
import { ChatTemplate } from "./template/chat-template.ts";
import { learnLinear } from "./template/linear-template.ts";
import type { TextEncoding } from "./text-encoder.ts";

/** A model's tokenizer, loaded and checked. */
export interface HuggingFaceModel {
  readonly encoding: TextEncoding;
  /** A text has the same tokens wherever it stands: nothing is put before the first word. */
  readonly isPositionless: boolean;
  readonly surround: Surround;
  readonly template: ChatTemplate | undefined;
  /** For requests with tools, where it is another. */
  readonly toolTemplate: ChatTemplate | undefined;
  readonly linear: LinearMessages | undefined;
  readonly path: string;
  readonly reason: string;
}

/** Throws an error that names the file and what is wrong with it. */
export async function loadHuggingFaceModel(files: HuggingFaceFiles): Promise<HuggingFaceModel> {
  const { tokenizerPath } = files;
  const listed = inFile(tokenizerPath, () => parseTokenizerJson(files.tokenizerText));
  const configured = configuredTokens(listed, files.addedTokensDecoder);
  const json = configured === undefined ? listed : { ...listed, added_tokens: configured };
  const text = configured === undefined ? files.tokenizerText : withAddedTokens(files.tokenizerText, configured);
  const native = inFile(tokenizerPath, () => NativeTokenizer.fromString(text));
  native.disableTruncation();
  native.disablePadding();
  const { encoding, path, reason } = await encodingOf(json, native, tokenizerPath);
  const templated = await templateOf(files, encoding);
  return {
    encoding,
    isPositionless: !PREPENDS.test(JSON.stringify([json.normalizer, json.pre_tokenizer])),
    surround: await surroundBy(files, json, native),
    ...templated,
    path: `${path}, ${templated.path}`,
    reason: `${reason}; ${templated.reason}`,
  };
}

/** What puts a space, or what stands for one, before a text. */
const PREPENDS = /"prepend_scheme":"(?:first|always)"|"add_prefix_space":true|"type":"Prepend"/;

function withAddedTokens(tokenizerText: string, added: readonly AddedTokenJson[]): string {
  const root = JSON.parse(tokenizerText) as Record<string, unknown>;
  return JSON.stringify({ ...root, added_tokens: added });
}

interface Found<T> {
  readonly path: string;
  readonly reason: string;
  readonly encoding: T;
}

async function encodingOf(json: TokenizerJson, native: NativeTokenizer, path: string): Promise<Found<TextEncoding>> {
  const recipe = readRecipe(json);
  const library = (reason: string): Found<TextEncoding> => ({
    path: "tokenizers library",
    reason,
    encoding: new NativeEncoder(native, json),
  });
  if (typeof recipe === "string") return library(recipe);
  const preTokenizer = native.getPreTokenizer()!;
  const own = inFile(path, () => new BpeEncoder(json, recipe, (text) => preTokenizer.preTokenizeString(text).length));
  const difference = await selfCheck(
    json,
    (text) => own.encode(text),
    async (text) => (await native.encode(text, null, { addSpecialTokens: false })).getIds(),
  );
  if (difference !== undefined) return library(`the own scanner differs from the library: ${difference}`);
  const family = recipe.digits === 3 ? "Llama 3" : "Qwen";
  return {
    path: "own scanner",
    reason: `byte-level BPE as in ${family}, equal to the library in the self-check`,
    encoding: own,
  };
}

async function templateOf(
  files: HuggingFaceFiles,
  encoding: TextEncoding,
): Promise<Pick<HuggingFaceModel, "template" | "toolTemplate" | "linear" | "path" | "reason">> {
  const none = { template: undefined, toolTemplate: undefined, linear: undefined };
  const source = files.templates.default;
  if (source === undefined) return { ...none, path: "chats estimated", reason: "no chat template was found" };
  const parse = (text: string): ChatTemplate =>
    inFile(files.templatePath, () => new ChatTemplate(text, files.specialTokens), "a chat template in Jinja");
  const template = parse(source);
  const { withTools } = files.templates;
  const toolTemplate = withTools === undefined ? undefined : parse(withTools);
  const learned = learnLinear(template);
  const rendered = { ...none, template, toolTemplate, path: "chats rendered" };
  if (typeof learned === "string") return { ...rendered, reason: learned };
  const linear = await linearMessages(learned, encoding);
  if (typeof linear === "string") return { ...rendered, reason: linear };
  return {
    template,
    toolTemplate,
    linear,
    path: "plain chats put together",
    reason: "its chat template puts fixed text around messages, equal to Jinja's in the self-check",
  };
}

async function surroundBy(files: HuggingFaceFiles, json: TokenizerJson, native: NativeTokenizer): Promise<Surround> {
  if (files.surround !== undefined) {
    const { bos, eos } = files.surround;
    const idOf = (name: string): number[] =>
      json.added_tokens.filter(({ content }) => content === files.specialTokens[name]).map(({ id }) => id);
    return {
      before: Int32Array.from(bos ? idOf("bos_token") : []),
      behind: Int32Array.from(eos ? idOf("eos_token") : []),
    };
  }
  const plain = await native.encode("a", null, { addSpecialTokens: false });
  const processed = await native.encode("a", null, { addSpecialTokens: true });
  const surround = surroundOf(plain.getIds(), processed.getIds());
  if (surround === undefined)
    throw new Error(`${files.tokenizerPath}: its post_processor changes the tokens of a text`);
  return surround;
}

function inFile<T>(path: string, read: () => T, accepted = "a file as the tokenizers library writes it"): T {
  try {
    return read();
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new Error(`${path}: ${problem}; accepted is ${accepted}`, { cause: error });
  }
}
