import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import { readChatPrompt } from "../openai/chat-request.ts";
import { FieldReader } from "../http/field-reader.ts";
import type { Service } from "../service/service.ts";

/** POST /tokenize: a text or a conversation. */
export async function handleTokenize(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const model = fields.string("model") ?? "";
  const strings = fields.boolean("return_token_strs") ?? false;
  const messages = fields.list("messages");
  const prompt = messages === undefined ? (fields.string("prompt") ?? missingPrompt(fields, body)) : "";
  fields.check();
  service.resolveModel(model);
  service.checkServing(exchange);
  const tokens =
    messages === undefined
      ? await service.tokenizer.encode(prompt)
      : await service.tokenizer.encodeChat(readChatPrompt(fields, messages, service.options.model));
  const answer = {
    count: tokens.length,
    max_model_len: service.options.engine.modelTokensMax,
    tokens: [...tokens],
    token_strs: strings ? Array.from(tokens, (token) => service.tokenizer.spell(token)) : null,
  };
  sendJson(exchange, 200, JSON.stringify(answer));
}

/** POST /detokenize. */
export function handleDetokenize(service: Service, exchange: ServedRequest, body: JsonObject): void {
  const fields = new FieldReader(body);
  const model = fields.string("model") ?? "";
  const tokens = fields.list("tokens");
  if (tokens === undefined && body["tokens"] === undefined) fields.missing("tokens");
  const ids = (tokens ?? []).map((token, index) => fields.asInt(`tokens.${index}`, token) ?? 0);
  fields.check();
  service.resolveModel(model);
  service.checkServing(exchange);
  const known = ids.filter((id) => service.tokenizer.has(id));
  const prompt = known.map((id) => service.tokenizer.decode(id)).join("");
  sendJson(exchange, 200, JSON.stringify({ prompt }));
}

function missingPrompt(fields: FieldReader, body: JsonObject): string {
  if (body["prompt"] !== undefined) return "";
  fields.missing("prompt");
  fields.missing("messages");
  return "";
}
