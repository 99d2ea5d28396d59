import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import type { Service } from "../service/service.ts";
import { handleChat } from "./chat.ts";
import { handleCompletions } from "./completions.ts";

/** POST /invocations (SageMaker): chat or completion by what the body holds. It is open even where /v1 needs a key. */
export function handleInvocations(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  if (body["messages"] !== undefined) return handleChat(service, exchange, body);
  return handleCompletions(service, exchange, body);
}
