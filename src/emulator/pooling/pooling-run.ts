import { hashBlocks, hashRoot } from "../generation/block-hash.ts";
import type { OutputPlan } from "../generation/output-plan.ts";
import type { EmulatedSequence } from "../generation/sequence.ts";
import { ApiError, badRequest } from "../http/api-error.ts";
import type { ServedRequest } from "../http/exchange.ts";
import type { FieldReader } from "../http/field-reader.ts";
import { headerText, type Service } from "../service/service.ts";
import { PooledAnswer } from "./pooled-answer.ts";

/** What a client may ask of every pooling route. */
export interface PoolingFields {
  readonly model: string;
  readonly requestId: string;
  readonly priority: number;
  readonly cacheSalt: string;
  /** Tokens that a prompt is cut to; undefined for all of it. */
  readonly promptTokensMax: number | undefined;
}

export function readPoolingFields(fields: FieldReader): PoolingFields {
  const salt = fields.body["cache_salt"];
  return {
    model: fields.string("model") ?? "",
    requestId: fields.string("request_id") ?? "",
    priority: fields.int("priority") ?? 0,
    cacheSalt: typeof salt === "string" ? salt : "",
    promptTokensMax: fields.int("truncate_prompt_tokens"),
  };
}

/** Nothing is generated: it is over with its prompt. */
const NOTHING: OutputPlan = { tokens: new Int32Array(0), texts: [], finish: "stop", stopReason: null };

/**
 * Computes prompts and answers with what `body` makes of them. Throws ApiError 400 for a prompt that the model cannot
 * take.
 */
export function runPooling(
  service: Service,
  exchange: ServedRequest,
  fields: PoolingFields,
  prompts: readonly Int32Array[],
  body: (promptTokens: number, prompts: readonly Int32Array[]) => unknown,
): void {
  const model = servedModel(service, fields.model);
  if (prompts.length === 0) throw badRequest("You must pass at least one prompt");
  const cut = prompts.map((prompt) => checked(service, truncated(prompt, fields.promptTokensMax)));
  service.checkServing(exchange);
  service.admit(cut.length);
  const adapter = model === service.options.model ? "" : model;
  const root = hashRoot(adapter, fields.cacheSalt);
  const sequences = cut.map((prompt, index): EmulatedSequence => {
    const hashes = hashBlocks(prompt, NOTHING.tokens, service.options.engine.blockTokens, root);
    const group = { n: 1, open: 1, producedMax: 0 };
    const { priority, cacheSalt } = fields;
    const own = { choice: index, prompt, plan: NOTHING, hashes, maxTokens: 0, group, adapter, cacheSalt, priority };
    return service.sequenceOf({ ...own, cacheRead: true, abortAfterTokens: undefined, transfer: undefined });
  });
  service.run(exchange, new PooledAnswer(exchange, sequences, (promptTokens) => body(promptTokens, cut)));
}

/** As `Service.resolveModel`; its refusal has other words on these routes. */
function servedModel(service: Service, name: string): string {
  try {
    return service.resolveModel(name);
  } catch (error) {
    if (!(error instanceof ApiError) || error.type !== "NotFoundError") throw error;
    throw new ApiError(404, "NotFoundError", `The model \`${name}\` does not exist.`);
  }
}

/** `embd-...`, by the client's id where it gave one. */
export function pooledId(
  service: Service,
  exchange: ServedRequest,
  prefix: string,
  { requestId }: PoolingFields,
): string {
  return `${prefix}-${headerText(exchange, "x-request-id") || requestId || service.ids.next(2)}`;
}

function truncated(prompt: Int32Array, tokensMax: number | undefined): Int32Array {
  return tokensMax === undefined || tokensMax < 0 ? prompt : prompt.subarray(0, tokensMax);
}

function checked({ options }: Service, prompt: Int32Array): Int32Array {
  const context = options.engine.modelTokensMax;
  if (prompt.length === 0) throw badRequest("The decoder prompt cannot be empty");
  if (prompt.length <= context) return prompt;
  const counted = context + 1;
  const message = `This model's maximum context length is ${context} tokens. However, your prompt contains at least ${counted} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.`;
  throw badRequest(message, "input_tokens", String(counted));
}
