import { ApiError, badRequest } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { Service } from "../service/service.ts";

const NOT_HELD = new ApiError(404, "NotFoundError", "no blocks are held for this request");

/** POST /emulator/kv-blocks: another engine asks about blocks that this one holds. */
export function handleKvBlocks(service: Service, exchange: ServedRequest, body: JsonObject): void {
  const { kvTransfer } = service.host;
  const { engineId, requestId, ask } = body;
  if (kvTransfer === undefined) throw badRequest("this server has no KV connector");
  if (typeof requestId !== "string" || (ask !== "renew" && ask !== "take"))
    throw badRequest("accepted is {engineId, requestId, ask: renew or take}");
  const { held, engineId: own } = kvTransfer;
  if (engineId !== own || !(ask === "renew" ? held.renew(requestId) : held.take(requestId))) throw NOT_HELD;
  sendJson(exchange, 200, "{}");
}

/** POST /emulator/kv-transfer {"failShare": [0, 1]}: part of the transfers to this engine that fail from now on. */
export function handleKvTransferFaults(service: Service, exchange: ServedRequest, body: JsonObject): void {
  const { kvTransfer } = service.host;
  if (kvTransfer === undefined) throw badRequest("this server has no KV connector");
  const { failShare } = body;
  if (typeof failShare !== "number" || !(failShare >= 0 && failShare <= 1))
    throw badRequest("failShare: accepted is a number in [0, 1]");
  kvTransfer.failShare = failShare;
  sendJson(exchange, 200, JSON.stringify({ failShare }));
}
