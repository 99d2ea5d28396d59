import { badRequest } from "../http/api-error.ts";
import { readChatPrompt } from "../openai/chat-request.ts";
import type { FieldReader } from "../http/field-reader.ts";
import type { Service } from "../service/service.ts";

/** A prompt as a client gives it: a text, or its tokens. */
export type PoolingInput = string | readonly number[];

/** `input` of a text, texts, tokens or lists of them; undefined, with the reason noted, where it is none of these. */
function readInput(fields: FieldReader): readonly PoolingInput[] | undefined {
  const input = fields.body["input"] ?? undefined;
  if (input === undefined) return fields.missing("input");
  if (typeof input === "string") return [input];
  if (isTokens(input) && input.length > 0) return [input];
  if (Array.isArray(input) && (input.every((one) => typeof one === "string") || input.every(isTokens))) return input;
  fields.refuse("input", "list_type", "Input should be a valid list", input);
  return fields.refuse("input", "string_type", "Input should be a valid string", input);
}

/** Throws ApiError 400 for a token below 0. */
function tokensChecked(input: readonly number[]): Int32Array {
  const unknown = input.find((token) => token < 0);
  if (unknown !== undefined) throw badRequest(`Token id ${unknown} is out of vocabulary`);
  return Int32Array.from(input);
}

/** A text or several, as scores take them. */
export function readTexts(fields: FieldReader, name: string): readonly string[] | undefined {
  const value = fields.body[name] ?? undefined;
  if (value === undefined) return fields.missing(name);
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  return fields.refuse(name, "string_type", "Input should be a valid string", value);
}

/** Tokens of `input`, or of the conversation in `messages`. Throws ApiError 400 where there is neither. */
export async function readPrompts(service: Service, fields: FieldReader): Promise<Int32Array[]> {
  const messages = fields.list("messages");
  if (messages !== undefined) {
    const prompt = readChatPrompt(fields, messages, service.options.model);
    return [await service.tokenizer.encodeChat({ ...prompt, addGenerationPrompt: false })];
  }
  const input = readInput(fields);
  fields.check();
  return Promise.all((input ?? []).map((one) => tokensOf(service, one)));
}

export async function tokensOf({ tokenizer }: Service, input: PoolingInput): Promise<Int32Array> {
  return typeof input === "string" ? tokenizer.encode(input) : tokensChecked(input);
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => Number.isInteger(one));
}
