import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { askProducer } from "../kv-transfer/side-channel.ts";
import { readTransferRequest } from "../kv-transfer/transfer-request.ts";
import type { Service } from "../service/service.ts";

type Handler = (service: Service, exchange: ServedRequest, body: JsonObject) => Promise<void> | void;

/**
 * As vLLM does: where a request is turned down whose blocks wait at another engine, that one is notified and frees
 * them.
 */
export function freeIfRefused(handle: Handler): Handler {
  return async (service, exchange, body) => {
    try {
      await handle(service, exchange, body);
    } catch (error) {
      const transfer = readTransferRequest(body["kv_transfer_params"]);
      if (service.host.kvTransfer !== undefined && transfer?.phase === "decode")
        void askProducer(transfer, transfer.engineId, transfer.requestId, "take");
      throw error;
    }
  };
}
