import { ApiError, badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import { FieldReader } from "../http/field-reader.ts";
import { checkLogprobs, readSampling, type Sampling } from "../generation/sampling.ts";

/** A validated body of /v1/completions. */
export interface CompletionRequest {
  /** Model that the client named; "" when it named none. */
  readonly model: string;
  readonly prompts: readonly (string | readonly number[])[];
  readonly sampling: Sampling;
  readonly echo: boolean;
  /** Alternatives per generated token; undefined when not asked for. */
  readonly logprobs: number | undefined;
}

const MAX_TOKENS_DEFAULT = 16;
const NO_SUFFIX = "suffix is only supported for models with FIM completion rendering";

/** Throws ApiError 400 in vLLM's words. */
export function readCompletionRequest(body: JsonObject): CompletionRequest {
  const fields = new FieldReader(body);
  const model = fields.string("model") ?? "";
  const echo = fields.boolean("echo") ?? false;
  const logprobs = fields.int("logprobs");
  const maxTokens = fields.int("max_tokens");
  const suffix = fields.string("suffix");
  const prompts = readPrompts(fields);
  const sampling = readSampling(fields, resolveMaxTokens(maxTokens, echo));
  if (suffix !== undefined) {
    throw new ApiError(400, "BadRequestError", NO_SUFFIX, "suffix");
  }
  if (logprobs !== undefined) checkLogprobs(logprobs, "logprobs");
  if (prompts.length === 0) throw badRequest("You must pass at least one prompt");
  return { model, prompts, sampling, echo, logprobs };
}

/** With `echo`, no tokens asked for still means one computed: vLLM needs it for the prompt's own scores. */
function resolveMaxTokens(maxTokens: number | undefined, echo: boolean): number {
  if (maxTokens === undefined) return MAX_TOKENS_DEFAULT;
  return maxTokens === 0 && echo ? 1 : maxTokens;
}

function readPrompts(fields: FieldReader): readonly (string | readonly number[])[] {
  const prompt = fields.body["prompt"] ?? undefined;
  if (prompt === undefined || prompt === "") {
    throw badRequest("Either prompt or prompt_embeds must be provided and non-empty.", "prompt");
  }
  if (typeof prompt === "string") return [prompt];
  if (Array.isArray(prompt)) {
    if (prompt.length > 0 && prompt.every(isTokenId)) return [prompt as number[]];
    const accepted = prompt.every((one) => typeof one === "string" || (Array.isArray(one) && one.every(isTokenId)));
    if (accepted) return prompt as (string | number[])[];
  }
  refusePrompt(fields, prompt);
  return [];
}

/** A prompt may be of four types: token ids, lists of them, a text, texts. pydantic reports why it is none of these. */
function refusePrompt(fields: FieldReader, prompt: unknown): void {
  const notList = (name: string, value: unknown) =>
    fields.refuse(name, "list_type", "Input should be a valid list", value);
  const notString = (name: string, value: unknown) =>
    fields.refuse(name, "string_type", "Input should be a valid string", value);
  const elements = Array.isArray(prompt) ? [...prompt.entries()] : undefined;
  if (elements === undefined) {
    notList("prompt", prompt);
    notList("prompt", prompt);
    notString("prompt", prompt);
    notList("prompt", prompt);
    return;
  }
  for (const [index, one] of elements) {
    const id = fields.asInt(`prompt.${index}`, one);
    if (id === undefined || id >= 0) continue;
    const reason = "Input should be greater than or equal to 0";
    fields.refuse(`prompt.${index}`, "greater_than_equal", reason, one, ", 'ctx': {'ge': 0}");
  }
  for (const [index, one] of elements) if (!Array.isArray(one)) notList(`prompt.${index}`, one);
  notString("prompt", prompt);
  for (const [index, one] of elements) if (typeof one !== "string") notString(`prompt.${index}`, one);
}

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0;
}
