import type { Surround } from "./table/added-by-processor.ts";
import { BpeEncoder } from "./bpe/bpe-encoder.ts";
import { openBpeTable } from "./bpe/bpe-table.ts";
import type { HuggingFaceFiles } from "./hugging-face-files.ts";
import { type LinearMessages, linearMessages } from "./linear-messages.ts";
import { NativeEncoder } from "./native-encoder.ts";
import { loadNativeModel } from "./table/native-model.ts";
import type { MadeTable, TableSource } from "./table/table-source.ts";
import { readTokenizerText, UnreadableFile } from "./table/tokenizer-file.ts";
import { ChatTemplate } from "./template/chat-template.ts";
import { learnLinear } from "./template/linear-template.ts";
import type { TextEncoding } from "./bpe/text-encoder.ts";

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
export async function loadHuggingFaceModel(files: HuggingFaceFiles, tables: TableSource): Promise<HuggingFaceModel> {
  const { path, reason, encoding, isPositionless, surround } = await inFile(files.tokenizerPath, () =>
    encodingOf(files, tables),
  );
  const templated = await templateOf(files, encoding);
  return {
    encoding,
    isPositionless,
    surround: surroundBy(files, encoding, surround),
    ...templated,
    path: `${path}, ${templated.path}`,
    reason: `${reason}; ${templated.reason}`,
  };
}

interface Found {
  readonly path: string;
  readonly reason: string;
  readonly encoding: TextEncoding;
  readonly isPositionless: boolean;
  readonly surround: Surround | undefined;
}

async function encodingOf(files: HuggingFaceFiles, tables: TableSource): Promise<Found> {
  const made = await tables(files);
  return "table" in made ? ownEncoding(made) : libraryEncoding(files, made);
}

async function ownEncoding({ table: packed, from }: Extract<MadeTable, { readonly table: unknown }>): Promise<Found> {
  const table = openBpeTable(packed);
  if (table === undefined) throw new Error("its table is damaged");
  const { recipe, isPositionless, surround } = table.facts;
  const normalizer = recipe.composes ? (await import("tokenizers")).nfcNormalizer() : undefined;
  const family = recipe.digits === 3 ? "Llama 3" : "Qwen";
  return {
    path: "own scanner",
    reason: `byte-level BPE as in ${family}, equal to the library in the self-check (table ${from})`,
    encoding: new BpeEncoder(table, normalizer),
    isPositionless,
    surround: surround && { before: Int32Array.from(surround.before), behind: Int32Array.from(surround.behind) },
  };
}

async function libraryEncoding(
  { tokenizerPath, addedTokensDecoder }: HuggingFaceFiles,
  { reason, loaded }: Extract<MadeTable, { readonly reason: string }>,
): Promise<Found> {
  const model = loaded ?? (await loadNativeModel(await readTokenizerText(tokenizerPath), addedTokensDecoder));
  return {
    path: "tokenizers library",
    reason,
    encoding: new NativeEncoder(model.native, model.json),
    isPositionless: model.isPositionless,
    surround: model.surround,
  };
}

async function templateOf(
  files: HuggingFaceFiles,
  encoding: TextEncoding,
): Promise<Pick<HuggingFaceModel, "template" | "toolTemplate" | "linear" | "path" | "reason">> {
  const none = { template: undefined, toolTemplate: undefined, linear: undefined };
  const source = files.templates.default;
  if (source === undefined) return { ...none, path: "chats estimated", reason: "no chat template was found" };
  const parse = (text: string): Promise<ChatTemplate> =>
    inFile(files.templatePath, () => new ChatTemplate(text, files.specialTokens), "a chat template in Jinja");
  const template = await parse(source);
  const { withTools } = files.templates;
  const toolTemplate = withTools === undefined ? undefined : await parse(withTools);
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

function surroundBy(
  { surround, specialTokens, tokenizerPath }: HuggingFaceFiles,
  { added }: TextEncoding,
  processed: Surround | undefined,
): Surround {
  if (surround !== undefined) {
    const idOf = (name: string): number[] =>
      added.filter(({ content }) => content === specialTokens[name]).map(({ id }) => id);
    return {
      before: Int32Array.from(surround.bos ? idOf("bos_token") : []),
      behind: Int32Array.from(surround.eos ? idOf("eos_token") : []),
    };
  }
  if (processed === undefined) throw new Error(`${tokenizerPath}: its post_processor changes the tokens of a text`);
  return processed;
}

async function inFile<T>(
  path: string,
  read: () => T | Promise<T>,
  accepted = "a file as the tokenizers library writes it",
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof UnreadableFile) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new Error(`${path}: ${problem}; accepted is ${accepted}`, { cause: error });
  }
}
