import { isObject, type JsonObject } from "../http/body.ts";

/**
 * What a request's `kv_transfer_params` ask of vLLM's NIXL connector. prefill: its blocks are held for another engine.
 * decode: its prompt was computed by another engine, which holds the blocks.
 */
export type TransferRequest = { readonly phase: "prefill" } | DecodeRequest;

export interface DecodeRequest {
  readonly phase: "decode";
  readonly engineId: string;
  readonly requestId: string;
  readonly host: string;
  readonly port: number;
}

/** Undefined where nothing is asked, or, as in vLLM, where a field is missing that a fetch needs. */
export function readTransferRequest(value: unknown): TransferRequest | undefined {
  if (!isObject(value)) return undefined;
  if (value["do_remote_decode"] === true) return { phase: "prefill" };
  if (value["do_remote_prefill"] !== true) return undefined;
  const { remote_engine_id, remote_request_id, remote_host, remote_port, remote_block_ids } = value;
  if (!Array.isArray(remote_block_ids) || remote_block_ids.length === 0) return undefined;
  if (typeof remote_engine_id !== "string" || typeof remote_request_id !== "string") return undefined;
  if (typeof remote_host !== "string" || !isPort(remote_port)) return undefined;
  return {
    phase: "decode",
    engineId: remote_engine_id,
    requestId: remote_request_id,
    host: remote_host,
    port: remote_port,
  };
}

/** Where an engine's blocks are fetched from. */
export interface TransferSource {
  readonly engineId: string;
  readonly host: string;
  readonly port: number;
}

/** What a prefill request's answer has as `kv_transfer_params`, to be sent with the decode request as it is. */
export function transferParameters(
  { engineId, host, port }: TransferSource,
  requestId: string,
  promptTokens: number,
  blockTokens: number,
): JsonObject {
  const blocks = Math.ceil(promptTokens / blockTokens);
  return {
    do_remote_prefill: true,
    do_remote_decode: false,
    // The model has no numbered blocks: there are as many numbers as blocks, which is what such a body weighs.
    remote_block_ids: [Array.from({ length: blocks }, (_, i) => i + 1)],
    remote_engine_id: engineId,
    remote_request_id: requestId,
    remote_host: host,
    remote_port: port,
    tp_size: 1,
    dcp_size: 1,
    pp_size: 1,
    remote_num_tokens: promptTokens,
    remote_blocks_expiry_time: null,
    transfer_mode: "pull",
  };
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= 65_535;
}
