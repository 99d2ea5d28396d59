import type { EmulatedSequence } from "../generation/sequence.ts";
import { badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { CompletionBody, type CompletionContext } from "../openai/completion-body.ts";
import { readCompletionRequest } from "../openai/completion-request.ts";
import { CompletionStream } from "../openai/completion-stream.ts";
import type { Service } from "../service/service.ts";
import { checkDataParallelRank, loadHeaders } from "./engine-header.ts";

/** POST /v1/completions. */
export async function handleCompletions(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const request = readCompletionRequest(body);
  const model = service.resolveModel(request.model);
  const sampling = service.priorityOf(exchange, request.sampling);
  checkDataParallelRank(exchange);
  // A stopping server has lost its tokenizer's threads: token ids still get an answer, of no tokens.
  if (request.prompts.some((prompt) => typeof prompt === "string")) service.checkServing(exchange);
  const scoresPrompt = sampling.promptLogprobs !== undefined || (request.echo && request.logprobs !== undefined);
  const sequences: EmulatedSequence[] = [];
  const promptTexts: string[] = [];
  for (const given of request.prompts) {
    const fromIds = typeof given !== "string";
    const prompt = fromIds ? checkedIds(service, given) : await service.tokenizer.encode(given);
    const maxTokens = service.resolveMaxTokens(prompt, fromIds, sampling);
    const job = { prompt, fromIds, sampling, model, firstChoice: sequences.length, scoresPrompt, forced: undefined };
    const added = service.sequencesOf(job, maxTokens, exchange);
    sequences.push(...added);
    const text = request.echo ? echoed(service, given) : "";
    for (let i = 0; i < added.length; i++) promptTexts.push(text);
  }
  if (service.phase === "serving") service.admit(sequences.length);
  const context: CompletionContext = {
    ...service.answerContext(exchange, "cmpl", model, sampling),
    request,
    promptTexts,
    promptOnly: request.echo && body["max_tokens"] === 0,
  };
  if (sampling.stream !== undefined) service.run(exchange, new CompletionStream(exchange, context, sequences));
  else service.run(exchange, new CompletionBody(exchange, context, sequences, () => loadHeaders(service, exchange)));
}

/** Throws ApiError 400 for an empty list and for an id outside the vocabulary. */
function checkedIds(service: Service, ids: readonly number[]): Int32Array {
  if (ids.length === 0) throw badRequest("You must pass at least one prompt");
  const unknown = ids.find((id) => !service.tokenizer.has(id));
  if (unknown !== undefined) throw badRequest(`Token id ${unknown} is out of vocabulary`);
  return Int32Array.from(ids);
}

function echoed(service: Service, prompt: string | readonly number[]): string {
  return typeof prompt === "string" ? prompt : prompt.map((id) => service.tokenizer.decode(id)).join("");
}
