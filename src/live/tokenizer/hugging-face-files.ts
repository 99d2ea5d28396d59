import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

const TOKENIZER_FILE = "tokenizer.json";
const CONFIG_FILE = "tokenizer_config.json";
const TEMPLATE_FILE = "chat_template.jinja";
const SPECIAL_TOKENS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

export interface HuggingFaceFiles {
  readonly tokenizerPath: string;
  /** added_tokens_decoder of tokenizer_config.json, as it stands there. */
  readonly addedTokensDecoder: unknown;
  /** Where the chat templates are from; "" where there are none. */
  readonly templatePath: string;
  readonly templates: ChatTemplates;
  /** bos_token, eos_token and the like, by name. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** What tokenizer_config.json states of them being put around a text; undefined where it leaves it to the tokenizer. */
  readonly surround: { readonly bos: boolean; readonly eos: boolean } | undefined;
}

export interface ChatTemplates {
  readonly default: string | undefined;
  /** For requests with tools, where it is another. */
  readonly withTools: string | undefined;
}

const NO_TEMPLATES: ChatTemplates = { default: undefined, withTools: undefined };

/** Reads a model's files. Throws an error that names the path and what is accepted there. */
export async function readHuggingFaceFiles(tokenizer: string, template: string | undefined): Promise<HuggingFaceFiles> {
  const tokenizerPath = (await isDirectory(tokenizer)) ? join(tokenizer, TOKENIZER_FILE) : tokenizer;
  const beside = dirname(tokenizerPath);
  const configPath = join(beside, CONFIG_FILE);
  const config = await readConfig(configPath);
  if (config["split_special_tokens"] === true) {
    throw new Error(`${configPath}: split_special_tokens is true; accepted is false, or the tokenizer kind vllm`);
  }
  const found = template === undefined ? await besideTemplates(beside, config) : await givenTemplates(template);
  return {
    tokenizerPath,
    addedTokensDecoder: config["added_tokens_decoder"],
    ...found,
    specialTokens: specialTokens(config),
    surround: surroundOf(config),
  };
}

function surroundOf(config: Readonly<Record<string, unknown>>): HuggingFaceFiles["surround"] {
  const bos = config["add_bos_token"];
  const eos = config["add_eos_token"];
  return bos === undefined && eos === undefined ? undefined : { bos: bos === true, eos: eos === true };
}

async function givenTemplates(path: string): Promise<{ templatePath: string; templates: ChatTemplates }> {
  const accepted = `a chat template in Jinja, or a ${CONFIG_FILE} that has a chat_template`;
  const text = await read(path, accepted);
  if (!path.endsWith(".json")) return { templatePath: path, templates: { default: text, withTools: undefined } };
  const templates = templatesOf(parseConfig(path, text));
  if (templates.default === undefined) throw new Error(`${path}: has no chat_template; accepted is ${accepted}`);
  return { templatePath: path, templates };
}

async function besideTemplates(
  directory: string,
  config: Readonly<Record<string, unknown>>,
): Promise<{ templatePath: string; templates: ChatTemplates }> {
  const path = join(directory, TEMPLATE_FILE);
  const text = await readIfThere(path);
  if (text !== undefined) return { templatePath: path, templates: { default: text, withTools: undefined } };
  const templates = templatesOf(config);
  if (templates.default === undefined) return { templatePath: "", templates: NO_TEMPLATES };
  return { templatePath: join(directory, CONFIG_FILE), templates };
}

/** One template, or a list of named ones. */
function templatesOf(config: Readonly<Record<string, unknown>>): ChatTemplates {
  const value = config["chat_template"];
  if (typeof value === "string") return { default: value, withTools: undefined };
  if (!Array.isArray(value)) return NO_TEMPLATES;
  const named = (name: string): string | undefined => {
    const entry = (value as Record<string, unknown>[]).find((one) => one["name"] === name);
    return typeof entry?.["template"] === "string" ? entry["template"] : undefined;
  };
  return { default: named("default"), withTools: named("tool_use") };
}

function specialTokens(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const name of SPECIAL_TOKENS) {
    const value = config[name];
    const content = typeof value === "object" && value !== null && "content" in value ? value.content : value;
    if (typeof content === "string") tokens[name] = content;
  }
  return tokens;
}

async function readConfig(path: string): Promise<Readonly<Record<string, unknown>>> {
  const text = await readIfThere(path);
  return text === undefined ? {} : parseConfig(path, text);
}

function parseConfig(path: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw new Error(`${path}: is not JSON; accepted is a ${CONFIG_FILE}`);
}

async function read(path: string, accepted: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`${path}: cannot be read (${codeOf(error)}); accepted is the path of ${accepted}`, {
      cause: error,
    });
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new Error(`${path}: cannot be read (${codeOf(error)})`, { cause: error });
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
