import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { Service } from "../service/service.ts";

/** GET /v1/models: the model under each of its names, then the adapters. */
export function handleModels(service: Service, exchange: ServedRequest): void {
  const { model, servedModels, engine } = service.options;
  const created = Math.floor(Date.now() / MILLIS_PER_SECOND);
  const card = (id: string, root: string, parent: string | null, contextTokens: number | null) => ({
    id,
    object: "model",
    created,
    owned_by: "vllm",
    root,
    parent,
    max_model_len: contextTokens,
    permission: [permission(`modelperm-${service.ids.next(2)}`, created)],
  });
  const data = [
    ...[model, ...servedModels].map((name) => card(name, model, null, engine.modelTokensMax)),
    ...Array.from(service.adapters, ([name, path]) => card(name, path, model, null)),
  ];
  sendJson(exchange, 200, JSON.stringify({ object: "list", data }));
}

function permission(id: string, created: number): unknown {
  return {
    id,
    object: "model_permission",
    created,
    allow_create_engine: false,
    allow_sampling: true,
    allow_logprobs: true,
    allow_search_indices: false,
    allow_view: true,
    allow_fine_tuning: false,
    organization: "*",
    group: null,
    is_blocking: false,
  };
}
