import { type Fields, isFields } from "../base/fields.ts";
import { withFields } from "../http/request-body.ts";

/** Fields that an engine may refuse in an answer of one token that does not stream. */
const OVERRIDDEN: Readonly<Record<string, unknown>> = {
  stream_options: null,
  max_completion_tokens: 1,
  min_tokens: 1,
  return_token_ids: false,
};

/** What vLLM's connectors take from a request whose blocks another engine will fetch. */
const FOR_REMOTE_DECODE = {
  do_remote_decode: true,
  do_remote_prefill: false,
  remote_engine_id: null,
  remote_block_ids: null,
  remote_host: null,
  remote_port: null,
} as const;

/**
 * The body of a chat or a completion as the endpoint gets it that computes its prompt: one token, in one piece. `more` in
 * place of the fields of vLLM's connectors, where the endpoints find each other by others.
 */
export function prefillBody(body: Buffer, more: Fields = { kv_transfer_params: FOR_REMOTE_DECODE }): Buffer {
  const parsed: unknown = JSON.parse(body.toString());
  const given = isFields(parsed) ? parsed : {};
  const overridden = Object.fromEntries(Object.entries(OVERRIDDEN).filter(([name]) => (given[name] ?? null) !== null));
  return withFields(body, { ...overridden, max_tokens: 1, stream: false, ...more });
}

/** The body as the endpoint gets it that answers, with what the first one returned, or by what it finds that one. */
export function answerBody(body: Buffer, { transfer, bootstrap }: { transfer?: unknown; bootstrap?: Fields }): Buffer {
  if (bootstrap !== undefined) return withFields(body, bootstrap);
  return transfer === undefined ? body : withFields(body, { kv_transfer_params: transfer });
}
