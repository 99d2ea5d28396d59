import { type Fields, isFields } from "../base/fields.ts";
import { withFields } from "../http/request-body.ts";
import { randomInt } from "node:crypto";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";

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

/** Label with the port at which an engine that computes prompts is met by the others. */
const BOOTSTRAP_PORT_LABEL = "gnomon/bootstrap-port";
/** SGLang's. */
const BOOTSTRAP_PORT = 8998;
/** Rooms are numbers that JSON keeps exact. */
const ROOMS = 2 ** 47;

/**
 * By what two engines that get a request at once find each other, as SGLang's do: where the first one waits, and a
 * room.
 */
export function bootstrapFields({ url, labels }: Pick<EndpointEntry, "url" | "labels">): Fields {
  const port = Number(labels?.[BOOTSTRAP_PORT_LABEL] ?? BOOTSTRAP_PORT);
  return {
    bootstrap_host: new URL(url).hostname,
    bootstrap_port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : BOOTSTRAP_PORT,
    bootstrap_room: randomInt(ROOMS),
  };
}
